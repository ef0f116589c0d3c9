import CryptoKit
import Foundation

/// Signs requests of an agency's app to Motorpool. `secret` is AGENCY_SECRET: 64 hexadecimal digits.
struct Signer {
    let keyID: String
    let secret: String

    /// Returns the value of the X-Agency-Signature header. `url` and `body` are exactly what is sent; `token` is that of the
    /// Authorization header. Call it anew for every attempt: a nonce is good for one request.
    func sign(
        method: String, url: URL, token: String, body: Data = Data(),
        time: Int = Int(Date().timeIntervalSince1970), nonce: String = UUID().uuidString
    ) -> String {
        let address = URLComponents(url: url, resolvingAgainstBaseURL: true)!
        let lines = [
            "v1", String(time), nonce, method.uppercased(), address.percentEncodedPath, address.percentEncodedQuery ?? "",
            hex(SHA256.hash(data: body)), hex(SHA256.hash(data: Data(token.utf8))),
        ]
        let mac = HMAC<SHA256>.authenticationCode(for: Data(lines.joined(separator: "\n").utf8), using: SymmetricKey(data: bytes(of: secret)))
        return "k=\(keyID),t=\(time),n=\(nonce),v1=\(hex(mac))"
    }

    private func hex(_ bytes: some Sequence<UInt8>) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    private func bytes(of digits: String) -> Data {
        let all = Array(digits)
        return Data(stride(from: 0, to: all.count, by: 2).map { UInt8(String(all[$0...$0 + 1]), radix: 16)! })
    }
}
