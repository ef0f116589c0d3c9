"""Signs requests of an agency's app to Motorpool. Needs Python 3.9 or newer, and nothing else."""

import hashlib
import hmac
import secrets
import time as clock
from urllib.parse import urlsplit


def sign(key_id, secret, method, url, token, body=b"", time=None, nonce=None):
    """Returns the value of the X-Agency-Signature header.

    secret is AGENCY_SECRET, 64 hexadecimal digits; url and body (bytes) are exactly what is sent; token is that of the
    Authorization header. Call it anew for every attempt: a nonce is good for one request.
    """
    time = int(clock.time()) if time is None else time
    nonce = nonce or secrets.token_urlsafe(16)
    address = urlsplit(url)
    lines = [
        "v1", str(time), nonce, method.upper(), address.path, address.query,
        hashlib.sha256(body).hexdigest(), hashlib.sha256(token.encode()).hexdigest(),
    ]
    mac = hmac.new(bytes.fromhex(secret), "\n".join(lines).encode(), hashlib.sha256)
    return f"k={key_id},t={time},n={nonce},v1={mac.hexdigest()}"
