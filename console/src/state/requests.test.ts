import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ApiError } from '../api/client';
import { isLost, Requests } from './requests.svelte';

const hour = 60 * 60_000;
let store: Storage;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2026-01-02T10:00:00.000Z') });
  const items = new Map<string, string>();
  store = {
    getItem: (k: string) => items.get(k) ?? null,
    setItem: (k: string, v: string) => items.set(k, v),
    removeItem: (k: string) => items.delete(k),
  } as unknown as Storage;
});
afterEach(() => void vi.useRealTimers());

/** A service that gives these answers, and the requests it got. */
function service(...answers: unknown[]) {
  const got: [what: string, key: string][] = [];
  const post = async (what: string, key: string) => {
    got.push([what, key]);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { got, post };
}
const cut = new TypeError('Failed to fetch');

it.each([
  [cut, true, true],
  [new ApiError(502, 'no_answer', ''), true, true],
  [new ApiError(500, 'internal', ''), true, true],
  [new ApiError(503, 'service_unavailable', ''), true, true],
  [new ApiError(409, 'idempotency_in_progress', ''), true, true],
  [new ApiError(401, 'unauthenticated', ''), false, true],
  [new ApiError(403, 'forbidden', ''), false, true],
  [new ApiError(429, 'rate_limited', ''), false, true],
  [new ApiError(429, 'rate_limited', '', 'not_executed'), false, true],
  [new ApiError(503, 'telematics_unavailable', '', 'not_executed'), false, true],
  [new ApiError(503, 'vehicle_offline', '', 'not_executed'), false, false],
  [new ApiError(504, 'command_timeout', '', 'unknown'), false, false],
  [new ApiError(404, 'booking_not_found', ''), false, false],
  [new ApiError(409, 'booking_state_conflict', ''), false, false],
  [new ApiError(422, 'refund_exceeds_paid', ''), false, false],
])('%s leaves the outcome of a first request open: %s, of a repeated one: %s', (error, first, repeated) => {
  expect(isLost(error, false)).toBe(first);
  expect(isLost(error, true)).toBe(repeated);
});

it('sends what is lost again, with its key, and nothing else', async () => {
  const requests = new Requests<string>('vehicle 4', store);
  const { got, post } = service(cut, 'done', 'done');
  await expect(requests.send('lock', post)).rejects.toBe(cut);
  await expect(requests.send('disable-driving', post)).rejects.toThrow('no answer yet');
  expect(await requests.again(post)).toBe('done');
  expect(got.map(([what]) => what)).toEqual(['lock', 'lock']);
  expect(got[1]?.[1]).toBe(got[0]?.[1]);
  expect(requests.isFree).toBe(true);
  await requests.send('unlock', post);
  expect(got[2]?.[1]).not.toBe(got[0]?.[1]);
});

it('keeps the key until an answer decides', async () => {
  const requests = new Requests<string>('booking 2', store);
  const limit = new ApiError(429, 'rate_limited', 'Too many requests.');
  const { got, post } = service(cut, limit, new ApiError(409, 'booking_state_conflict', 'It is over.'));
  await expect(requests.send('refund', post)).rejects.toBe(cut);
  expect(requests.why).toBe('');
  await expect(requests.again(post)).rejects.toBe(limit);
  expect(requests.why).toBe('Too many requests.');
  expect(new Requests<string>('booking 2', store).lost?.key).toBe(got[0]?.[1]);
  await expect(requests.again(post)).rejects.toThrow('It is over.');
  expect(requests.lost).toBeNull();
  expect(new Requests<string>('booking 2', store).lost).toBeNull();
});

it('keeps a request of a page that was loaded again, and of another person apart', async () => {
  let answer = (_: string) => {};
  const sending = new Requests<string>('booking 2 zoe', store).send('refund', () => new Promise<string>((resolve) => (answer = resolve)));
  expect(new Requests<string>('booking 2 zoe', store).lost?.what).toBe('refund');
  expect(new Requests<string>('booking 2 eva', store).lost).toBeNull();
  answer('done');
  await sending;
  expect(new Requests<string>('booking 2 zoe', store).lost).toBeNull();
});

it('does not send again what the service may have forgotten', async () => {
  const requests = new Requests<string>('booking 2', store);
  const { got, post } = service(cut, cut);
  await expect(requests.send('refund', post)).rejects.toBe(cut);
  vi.advanceTimersByTime(22 * hour);
  await expect(requests.again(post)).rejects.toBe(cut);
  vi.advanceTimersByTime(hour);
  expect(requests.isTooOld(Date.now())).toBe(true);
  await expect(requests.again(post)).rejects.toThrow('nothing to send again');
  expect(got).toHaveLength(2);
  requests.forget();
  expect(requests.isFree).toBe(true);
});

it('sends nothing where there is no room to keep the request, and can send later', async () => {
  const requests = new Requests<string>('a', store);
  const { got, post } = service('done');
  const { setItem } = store;
  store.setItem = () => {
    throw new DOMException('full', 'QuotaExceededError');
  };
  await expect(requests.send('lock', post)).rejects.toThrow('full');
  expect([got, requests.isFree]).toEqual([[], true]);
  store.setItem = setItem;
  await expect(requests.send('lock', post)).resolves.toBe('done');
});
