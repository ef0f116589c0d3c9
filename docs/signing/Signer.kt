import java.net.URI
import java.security.MessageDigest
import java.security.SecureRandom
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

/** Signs requests of an agency's app to Motorpool. [secret] is AGENCY_SECRET: 64 hexadecimal digits. */
class Signer(private val keyId: String, secret: String) {
    private val key = SecretKeySpec(secret.chunked(2).map { it.toInt(16).toByte() }.toByteArray(), "HmacSHA256")

    /**
     * Returns the value of the X-Agency-Signature header. [url] (complete) and [body] are exactly what is sent; [token] is that of
     * the Authorization header. Call it anew for every attempt, in an OkHttp network interceptor for example: a nonce is good for
     * one request.
     */
    fun sign(
        method: String, url: String, token: String, body: ByteArray = ByteArray(0),
        time: Long = System.currentTimeMillis() / 1000, nonce: String = newNonce(),
    ): String {
        val address = URI(url)
        val lines = listOf(
            "v1", time.toString(), nonce, method.uppercase(), address.rawPath, address.rawQuery ?: "",
            sha256(body), sha256(token.toByteArray()),
        )
        val mac = Mac.getInstance("HmacSHA256").apply { init(key) }.doFinal(lines.joinToString("\n").toByteArray())
        return "k=$keyId,t=$time,n=$nonce,v1=${hex(mac)}"
    }

    private fun newNonce() = hex(ByteArray(16).also { SecureRandom().nextBytes(it) })
    private fun sha256(bytes: ByteArray) = hex(MessageDigest.getInstance("SHA-256").digest(bytes))
    private fun hex(bytes: ByteArray) = bytes.joinToString("") { "%02x".format(it) }
}
