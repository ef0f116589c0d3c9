import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { sign } from './signer.js';

globalThis.crypto ??= webcrypto as Crypto; // Node 18 has it by import alone

// The environment variable VECTORS is the file of vectors.
const vectors = JSON.parse(readFileSync(process.env.VECTORS ?? 'vectors.json', 'utf8'));
const key = { id: 'ak_1', secret: vectors.secret };

for (const request of vectors.requests) {
  test(`signs ${request.method} ${request.url}`, async () => {
    const header = await sign(key, { ...request, token: vectors.token }, vectors.time, vectors.nonce);
    assert.equal(header, `k=ak_1,t=${vectors.time},n=${vectors.nonce},v1=${request.v1}`);
  });
}

test('every attempt has another nonce', async () => {
  const request = { ...vectors.requests[0], token: vectors.token };
  assert.notEqual(await sign(key, request), await sign(key, request));
});
