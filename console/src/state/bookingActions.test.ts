import { expect, it } from 'vitest';
import { ApiError, type AdminBooking, type Me } from '../api/client';
import { en } from '../texts/en';
import { changes, isLost, SentChange, whyNotChanged, type Change } from './bookingActions';

const now = Date.parse('2026-01-02T10:00:00.000Z');
const booking = (change: object) =>
  ({ status: 'active', end_date: '2026-01-02T18:00:00.000Z', limits: { refund: 142.8, capture: 200, fee: 1700 }, payment: { charged: 142.8 }, charges: [], ...change }) as unknown as AdminBooking;
const me = (level: Me['level']) => ({ level }) as Me;
const on = (level: Me['level'], change: object = {}) => changes.filter((c) => whyNotChanged(c, booking(change), me(level), now, en) === '');

it('lets a role do what the API lets it', () => {
  expect(on('administrator')).toEqual(['end', 'refund', 'capture', 'fee']);
  expect(on('operator')).toEqual(['end']);
  expect(on('viewer')).toEqual([]);
  const upcoming = { status: 'upcoming', limits: { refund: 0, capture: 0, fee: 0 }, payment: { charged: 0 } };
  expect(on('administrator', upcoming)).toEqual(['start']);
  expect(on('administrator', { ...upcoming, end_date: '2026-01-02T10:00:00.000Z' })).toEqual([]);
});

it.each([
  ['end', { status: 'completed' }, en.booking.off.notActive('completed')],
  ['refund', { limits: { refund: 0 } }, en.booking.off.allBack],
  ['refund', { limits: { refund: 0 }, payment: { charged: 0 } }, en.booking.off.nothingPaid],
  ['capture', { limits: { capture: 0 }, charges: [{ kind: 'deposit', goal: 'capture' }] }, en.booking.off.captured],
  ['capture', { limits: { capture: 0 }, charges: [{ kind: 'deposit', goal: 'release' }] }, en.booking.off.notHeld],
  ['fee', { limits: { fee: 0 } }, en.booking.off.notStarted],
] as [Change, object, string][])('says why %s is off', (change, state, want) => expect(whyNotChanged(change, booking(state), me('administrator'), now, en)).toBe(want));

it.each([
  [new TypeError('Failed to fetch'), true],
  [new ApiError(502, 'no_answer', ''), true],
  [new ApiError(503, 'service_unavailable', ''), true],
  [new ApiError(409, 'idempotency_in_progress', ''), true],
  [new ApiError(409, 'booking_state_conflict', ''), false],
  [new ApiError(422, 'refund_exceeds_paid', ''), false],
])('%s leaves the outcome open: %s', (error, want) => expect(isLost(error)).toBe(want));

it('keeps what was sent for the person who sent it', () => {
  const items = new Map<string, string>();
  const store = { getItem: (k: string) => items.get(k) ?? null, setItem: (k: string, v: string) => items.set(k, v), removeItem: (k: string) => items.delete(k) } as unknown as Storage;
  const sent = { change: 'refund' as const, key: 'k', body: { amount: 1, reason: 'x' } };
  new SentChange('zoe', 2, store).write(sent);
  expect(new SentChange('zoe', 2, store).read()).toEqual(sent);
  expect(new SentChange('eva', 2, store).read()).toBeNull();
  expect(new SentChange('zoe', 3, store).read()).toBeNull();
  new SentChange('zoe', 2, store).write(null);
  expect(new SentChange('zoe', 2, store).read()).toBeNull();
});
