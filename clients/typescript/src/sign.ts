// Signs requests of an agency's app to Motorpool. Works wherever Web Crypto does: browsers, Node 20, Deno, Bun.
export interface AgencyKey {
  id: string; // AGENCY_KEY_ID
  secret: string; // AGENCY_SECRET: 64 hexadecimal digits
}

export interface SignedRequest {
  method: string;
  url: string; // complete, exactly as it is sent
  body?: string; // exactly as it is sent
  token: string; // the access token of the Authorization header
}

const hex = (bytes: ArrayBuffer) => Array.from(new Uint8Array(bytes), (b) => b.toString(16).padStart(2, '0')).join('');
const sha256 = async (text: string) => hex(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));

function newNonce(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)).buffer);
}

/** Returns the value of the X-Agency-Signature header. Call it anew for every attempt: a nonce is good for one request. */
export async function sign(
  key: AgencyKey, request: SignedRequest, time = Math.floor(Date.now() / 1000), nonce = newNonce(),
): Promise<string> {
  const { pathname, search } = new URL(request.url);
  const lines = [
    'v1', String(time), nonce, request.method.toUpperCase(), pathname, search.slice(1),
    await sha256(request.body ?? ''), await sha256(request.token),
  ];
  const secret = Uint8Array.from(key.secret.match(/../g) ?? [], (digits) => parseInt(digits, 16));
  const hmac = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const mac = await crypto.subtle.sign('HMAC', hmac, new TextEncoder().encode(lines.join('\n')));
  return `k=${key.id},t=${time},n=${nonce},v1=${hex(mac)}`;
}
