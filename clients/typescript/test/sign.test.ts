import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { sign } from '../src/sign.js';

const vectors = JSON.parse(readFileSync(new URL('../../../../docs/signing/vectors.json', import.meta.url), 'utf8'));
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
