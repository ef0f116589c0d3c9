// Signs clients' calls from /docs with the demo app's key (docs/http.md, "Agency signature"). The development world alone
// serves this: in production an app's secret is in no page.
window.docsRequestInterceptor = async (request) => {
  const url = new URL(request.url, location.href);
  if (!url.pathname.startsWith("/api/v1/client/") || !crypto.subtle) return request; // browsers sign on loopback and https:// only
  const bytes = (text) => new TextEncoder().encode(text);
  const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
  const sha256 = async (text) => hex(await crypto.subtle.digest("SHA-256", bytes(text)));

  const token = (request.headers.Authorization || "").replace(/^Bearer +/i, "");
  const time = Math.floor(Date.now() / 1000).toString();
  const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  const lines = ["v1", time, nonce, request.method.toUpperCase(), url.pathname, url.search.slice(1), await sha256(request.body || ""), await sha256(token)];

  const secret = Uint8Array.from(AGENCY_SECRET.match(/../g), (pair) => parseInt(pair, 16));
  const key = await crypto.subtle.importKey("raw", secret, {name: "HMAC", hash: "SHA-256"}, false, ["sign"]);
  const signature = hex(await crypto.subtle.sign("HMAC", key, bytes(lines.join("\n"))));
  request.headers["X-Agency-Signature"] = `k=${AGENCY_KEY_ID},t=${time},n=${nonce},v1=${signature}`;
  return request;
};
