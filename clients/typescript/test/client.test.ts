import assert from 'node:assert/strict';
import { test } from 'node:test';
import { follow, Motorpool, MotorpoolError, move, sign, type Config, type Transition } from '../src/index.js';

const key = { id: 'ak_1', secret: '00'.repeat(32) };
const now = () => Math.floor(Date.now() / 1000);

interface Sent { method: string; url: string; body: string | undefined; headers: Record<string, string> }

/** A client of a service that gives these answers, in this order; an Error: the connection breaks. */
function client(answers: (Response | Error)[], config: Partial<Config> = {}) {
  const sent: Sent[] = [];
  const api = new Motorpool({
    baseUrl: 'https://fleet.example', token: 'token-abc', sign: key, ...config,
    fetch: async (url, init) => {
      const { method, body, headers } = init as { method: string; body?: string; headers: Record<string, string> };
      sent.push({ url: String(url), method, body, headers });
      const answer = answers.shift();
      assert.ok(answer, 'one request more than expected');
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  return { api, sent, done: () => assert.equal(answers.length, 0, 'requests that were expected and not sent') };
}

const about = { request_id: '9f1c8a52-7f0e-4a54-8a3e-0c8f3b1d2e4f', timestamp: new Date().toISOString() };
const ok = (data: unknown, status = 200, headers: Record<string, string> = {}, more: object = {}) =>
  Response.json({ success: true, message: 'done', data, ...about, ...more }, { status, headers });
const refused = (status: number, error: object, more: object = {}) => Response.json({
  success: false, message: 'no', data: null, ...about, ...more,
  error: { code: 'internal', retryable: false, retry_after: null, outcome: null, command_id: null, reason: null, detail: null, ...error },
}, { status });
const lost = () => new TypeError('fetch failed');
const code = (wanted: string) => (e: unknown) => e instanceof MotorpoolError && e.code === wanted;

test('a POST whose answer is lost is repeated with its key, and signed anew', async () => {
  const { api, sent } = client([lost(), ok({ id: 1 })]);
  await api.post('bookings/{booking}/extend', { path: { booking: 7 }, body: { end_date: '2026-01-02T20:00:00Z' } });
  const [first, second] = sent as [Sent, Sent];
  assert.equal(first.url, 'https://fleet.example/api/v1/client/bookings/7/extend');
  assert.match(first.headers['Idempotency-Key']!, /^[0-9a-z-]{20,}$/);
  assert.equal(second.headers['Idempotency-Key'], first.headers['Idempotency-Key']);
  assert.equal(second.body, first.body);
  assert.notEqual(second.headers['X-Agency-Signature'], first.headers['X-Agency-Signature']);
  for (const { method, url, body, headers } of sent) {
    const [, time, nonce] = /t=(\d+),n=(\w+)/.exec(headers['X-Agency-Signature']!)!;
    assert.equal(headers['X-Agency-Signature'], await sign(key, { method, url, body: body!, token: 'token-abc' }, Number(time), nonce));
  }
});

test('each POST has a new key, unless the app gives one', async () => {
  const { api, sent } = client([ok({}), ok({}), ok({})]);
  await api.post('bookings/{booking}/cancel', { path: { booking: 1 } });
  await api.post('bookings/{booking}/cancel', { path: { booking: 1 } });
  await api.post('bookings/{booking}/cancel', { path: { booking: 1 }, key: 'tap-1' });
  const keys = sent.map((s) => s.headers['Idempotency-Key']);
  assert.equal(new Set(keys).size, 3);
  assert.equal(keys[2], 'tap-1');
});

test('what is retryable is repeated after retry_after', async () => {
  const { api, done } = client([refused(409, { code: 'idempotency_in_progress', retryable: true, retry_after: 1 }), ok({ id: 1 })]);
  const began = Date.now();
  await api.post('bookings/{booking}/cancel', { path: { booking: 1 } });
  assert.ok(Date.now() - began >= 990);
  done();
});

for (const [what, answer] of Object.entries({
  'an unknown outcome': () => refused(504, { code: 'command_timeout', outcome: 'unknown', retryable: true, retry_after: 0 }),
  'a failure': () => refused(502, { code: 'command_failed', outcome: 'failed', retryable: true, retry_after: 0 }),
  'a refusal': () => refused(409, { code: 'booking_not_active', outcome: 'not_executed' }),
  'a return with an open door': () => refused(409, { code: 'return_not_possible', retryable: true, retry_after: 0, checks: [{}] }),
  'a wait that is too long to be hidden': () => refused(409, { code: 'vehicle_state_conflict', retryable: true, retry_after: 15 }),
})) {
  test(`${what} is not repeated`, async () => {
    const { api, sent } = client([answer()]);
    await assert.rejects(api.post('bookings/{booking}/control/unlock', { path: { booking: 1 } }), MotorpoolError);
    assert.equal(sent.length, 1);
  });
}

test('repeating ends when the patience is over', async () => {
  const busy = { code: 'service_unavailable', retryable: true, retry_after: 1 };
  const { api, done } = client([refused(503, busy), refused(503, busy)], { patience: 1_500 });
  await assert.rejects(api.get('bookings'), code('service_unavailable'));
  done();
});

test('a lost answer: a GET is repeated, also after a 502 of a proxy; a DELETE is not', async () => {
  const reading = client([new Response('<html>bad gateway', { status: 502 }), ok([])]);
  assert.deepEqual((await reading.api.get('payment-methods')).data, []);
  const removing = client([lost()]);
  await assert.rejects(removing.api.delete('payment-methods/{id}', { path: { id: 3 } }), code('no_answer'));
  assert.equal(removing.sent.length, 1);
});

test('an attempt without an answer ends in time', async () => {
  const api = new Motorpool({
    baseUrl: 'https://fleet.example', token: 'token-abc', sign: key, timeout: 20, patience: 0,
    fetch: (_, init) => new Promise((_, reject) => init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason))),
  });
  await assert.rejects(api.get('bookings'), code('no_answer'));
});

test('a request whose connection hangs for longer than the patience is sent again, once', async () => {
  const keys: string[] = [];
  const api = new Motorpool({
    baseUrl: 'https://fleet.example', token: 'token-abc', sign: key, timeout: 20, patience: 10,
    fetch: (_, init) => {
      keys.push((init!.headers as Record<string, string>)['Idempotency-Key']!);
      if (keys.length === 2) return Promise.resolve(ok({ id: 1 }));
      return new Promise((_, reject) => init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason)));
    },
  });
  assert.equal((await api.post('bookings/{booking}/cancel', { path: { booking: 1 } })).data.id, 1);
  assert.equal(keys[1], keys[0]);
});

test('a function that signs needs no Web Crypto', async () => {
  const { api, sent } = client([ok({}), ok({})], { sign: () => 'signature' });
  const web = Object.getOwnPropertyDescriptor(globalThis, 'crypto')!;
  Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true });
  try {
    for (let n = 0; n < 2; n++) await api.post('bookings/{booking}/cancel', { path: { booking: 1 } });
  } finally {
    Object.defineProperty(globalThis, 'crypto', web);
  }
  assert.equal(new Set(sent.map((s) => s.headers['Idempotency-Key'])).size, 2);
});

test('a wrong clock is corrected by the time of the service', async () => {
  const service = now() + 4_000;
  const there = { timestamp: new Date(service * 1000).toISOString() };
  const { api, sent } = client([refused(401, { code: 'agency_signature_stale' }, there), ok([], 200, {}, there), ok([], 200, {}, there)]);
  await api.get('bookings');
  await api.get('bookings');
  for (const { headers } of sent.slice(1)) {
    assert.ok(Math.abs(Number(/t=(\d+)/.exec(headers['X-Agency-Signature']!)![1]) - service) <= 2);
  }
});

test('a rental from now begins at the time of the service, also where a server signs', async () => {
  const { api } = client([ok([], 200, {}, { timestamp: new Date(Date.now() - 3_600_000).toISOString() })], { sign: () => 'signature' });
  await api.get('vehicles');
  assert.ok(Math.abs(api.now().getTime() + 3_600_000 - Date.now()) <= 2_000);
});

test('a token that was refused is renewed, once', async () => {
  const expired = () => refused(401, { code: 'unauthenticated' });
  const { api, sent } = client([expired(), expired()], { token: (renew) => (renew ? 'second' : 'first') });
  await assert.rejects(api.get('bookings'), code('unauthenticated'));
  assert.deepEqual(sent.map((s) => s.headers.Authorization), ['Bearer first', 'Bearer second']);
});

test('a token that was renewed is not renewed again with each repetition', async () => {
  const renewed: boolean[] = [];
  const busy = () => refused(409, { code: 'idempotency_in_progress', retryable: true, retry_after: 0 });
  const { api, done } = client([refused(401, { code: 'unauthenticated' }), busy(), busy(), ok({ id: 1 })], {
    token: (renew) => `token ${renewed.push(renew)}`,
  });
  await api.post('bookings/{booking}/cancel', { path: { booking: 1 } });
  assert.deepEqual(renewed, [false, true, false, false]);
  done();
});

test('a function may sign, for example at a server', async () => {
  const { api, sent } = client([ok([])], { sign: (request) => `signature of ${request.method} ${request.url}` });
  await api.get('bookings', { query: { status: 'active', limit: 20, cursor: 'a b/ü' } });
  assert.equal(sent[0]!.headers['X-Agency-Signature'],
    'signature of GET https://fleet.example/api/v1/client/bookings?status=active&limit=20&cursor=a%20b%2F%C3%BC');
});

test('an error has what the app needs', async () => {
  const error = { code: 'return_not_possible', checks: [{ name: 'doors', ok: false }] };
  const { api } = client([refused(409, error, { errors: { a: ['b'] } })]);
  await assert.rejects(api.post('bookings/{booking}/cancel', { path: { booking: 1 } }), (e) => {
    assert.ok(e instanceof MotorpoolError);
    assert.deepEqual([e.code, e.status, e.checks[0]!.name, e.fields, e.requestId, e.message],
      ['return_not_possible', 409, 'doors', { a: ['b'] }, about.request_id, 'no']);
    return true;
  });
});

test('the app can stop a request that waits', async () => {
  const stop = new AbortController();
  const { api } = client([refused(503, { code: 'service_unavailable', retryable: true, retry_after: 9 })]);
  const waiting = api.get('bookings', { signal: stop.signal });
  setTimeout(() => stop.abort(new Error('closed')), 20);
  await assert.rejects(waiting, /closed/);
});

const transition = (change: Partial<Transition>): Transition => ({
  id: 't', booking_id: 7, kind: 'end', state: 'open', step: 'command', needs_staff: false, steps: [], next: ['wait'], error: null,
  checks: [], command_id: null, requested_at: about.timestamp, requested_by: 'client-1', override: null, ended_at: null, ...change,
});
const there = { Location: '/api/v1/client/bookings/7/transitions/t' };

test('a transition that takes longer is followed until it is done', async () => {
  const { api, sent, done } = client([
    ok(transition({}), 202, there), ok(transition({})), ok(transition({ step: 'confirm' })), ok(transition({ state: 'done', step: null })),
    ok({ id: 7, status: 'completed' }),
  ]);
  const steps: string[] = [];
  const booking = await move(api, 'end', 7, { onChange: (t) => steps.push(`${t.step} ${t.state}`) });
  assert.equal(booking.status, 'completed');
  assert.deepEqual(steps, ['command open', 'confirm open', 'null done']);
  assert.deepEqual(sent.map((s) => s.method + new URL(s.url).pathname.slice('/api/v1/client/bookings/7'.length)),
    ['POST/end', 'GET/transitions/t', 'GET/transitions/t', 'GET/transitions/t', 'GET']);
  assert.equal(sent[0]!.headers.Prefer, 'respond-async');
  done();
});

test('a transition is followed also through a gap of the network', async () => {
  const { api, done } = client([
    ok(transition({}), 202, there), lost(), refused(503, { code: 'service_unavailable', retryable: true, retry_after: 30 }),
    ok(transition({ state: 'done', step: null })), ok({ id: 7, status: 'completed' }),
  ], { patience: 0 });
  assert.equal((await move(api, 'end', 7)).status, 'completed');
  done();
  const gone = client([ok(transition({}), 202, there), refused(404, { code: 'transition_not_found' })]);
  await assert.rejects(move(gone.api, 'end', 7), code('transition_not_found'));
  const away = client([ok(transition({}), 202, there), lost()], { patience: 0 });
  await assert.rejects(move(away.api, 'end', 7, { within: 100 }), code('no_answer'));
});

test('an app that was closed follows the transition of its booking', async () => {
  const { api, sent } = client([ok(transition({ state: 'done', step: null }))]);
  assert.equal((await follow(api, transition({}))).state, 'done');
  assert.equal(new URL(sent[0]!.url).pathname, there.Location);
});

test('each payment that has to be confirmed is said once', async () => {
  const waits = (status = 200) => ok(transition({ kind: 'start', step: 'pay', next: ['confirm_payment'] }), status, there);
  const payment = (client_secret: string) => ok({ client_secret });
  const { api, done } = client([
    waits(202), payment('rental'), waits(), payment('rental'), waits(), refused(409, { code: 'booking_state_conflict' }),
    waits(), payment('deposit'),
    ok(transition({ kind: 'start', state: 'done', step: null })), ok({ id: 7, status: 'active' }),
  ]);
  const secrets: string[] = [];
  await move(api, 'start', 7, { onPayment: (secret) => secrets.push(secret) });
  assert.deepEqual(secrets, ['rental', 'deposit']);
  done();
});

test('a start is followed also while its payment cannot be read', async () => {
  const start = (change: Partial<Transition>, status = 200) => ok(transition({ kind: 'start', ...change }), status, there);
  const away = refused(503, { code: 'payment_processor_unavailable', retryable: true, retry_after: 10 });
  const { api, done } = client([
    start({ step: 'pay', next: ['confirm_payment'] }, 202), away, start({ state: 'done', step: null }), ok({ id: 7, status: 'active' }),
  ], { patience: 0 });
  assert.equal((await move(api, 'start', 7, { onPayment: () => assert.fail('there is no secret') })).status, 'active');
  done();
});

test('a start that is too far away is not repeated', async () => {
  const { api, sent } = client([refused(409, { code: 'too_far', retryable: true, retry_after: 1 })]);
  await assert.rejects(move(api, 'start', 7, { place: { latitude: 48, longitude: 11 } }), code('too_far'));
  assert.equal(sent.length, 1);
});

test('a transition that fails is an error, and one that stays open, too', async () => {
  const error = { code: 'return_not_possible', message: 'Close the doors.', retryable: true, outcome: 'not_executed', reason: null };
  const open = { name: 'doors', ok: false, expected: 'closed', reported: 'rear left open' } as const;
  const failing = client([ok(transition({ state: 'failed', error, checks: [open] }), 202, there)]);
  await assert.rejects(move(failing.api, 'end', 7),
    (e) => e instanceof MotorpoolError && e.checks.length === 1 && code('return_not_possible')(e));
  const pending = client([ok(transition({}), 202, there)]);
  await assert.rejects(move(pending.api, 'end', 7, { within: -1 }), code('transition_open'));
});

// Is only compiled: what the contract does not have is an error.
export async function compiled(api: Motorpool): Promise<string> {
  const { data } = await api.get('vehicles', { query: { latitude: 48.1, longitude: 11.5 } });
  await api.post('bookings/{booking}/transitions/{transition}/cancel', { path: { booking: 1, transition: 't' } });
  // @ts-expect-error there is no such path
  await api.get('nothing');
  // @ts-expect-error the path has a parameter
  await api.get('bookings/{booking}');
  // @ts-expect-error the body has no such member
  await api.post('quotes', { body: { vehicle: 1 } });
  return data[0]!.pricing.currency;
}
