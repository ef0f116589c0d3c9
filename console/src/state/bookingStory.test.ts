import { expect, it } from 'vitest';
import type { Activity, AdminBooking, Charge, Command } from '../api/client';
import { bookingStory, causeOf, endOfDeposit, triesOf, twinOf } from './bookingStory';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 2, 8) + seconds * 1000).toISOString();
const charge = (change: Partial<Charge>) =>
  ({
    id: 'a',
    kind: 'start',
    number: 1,
    state: 'paid',
    currency: 'EUR',
    amount: 142.8,
    settled: 142.8,
    refund_of: null,
    fee: null,
    goal: null,
    decline_code: null,
    created_at: at(0),
    paid_at: null,
    next_attempt_at: null,
    ...change,
  }) as Charge;
const entry = (change: Partial<Activity>) =>
  ({ at: at(0), actor: 'zoe', outcome: 'executed', code: null, parameters: null, command_id: null, ...change }) as Activity;
const moved = (seconds: number, kind: string, number: number, state: string, code?: string) =>
  entry({
    at: at(seconds),
    actor: 'motorpool',
    action: `charge.${kind}`,
    parameters: { number, state, ...(code ? { decline_code: code } : {}) },
  });
const booking = (charges: Charge[]) => ({ id: 2, start_date: at(0), end_date: at(8 * 3600), charges }) as AdminBooking;

it('finds who caused each charge', () => {
  const entries = [
    entry({ action: 'booking.extend', actor: 'client-1', at: at(100) }),
    entry({ action: 'booking.extend', actor: 'client-1', at: at(99), outcome: 'not_executed', code: 'booking_not_extendable' }),
    entry({ action: 'booking.extend', actor: 'client-1', at: at(4000) }),
    entry({ action: 'booking.start', actor: 'zoe', at: at(0) }),
  ];
  expect(causeOf(charge({ created_at: at(0.004) }), entries)?.actor).toBe('zoe');
  expect(causeOf(charge({ kind: 'deposit' }), entries)?.actor).toBe('zoe');
  expect(causeOf(charge({ kind: 'extension', created_at: at(100) }), entries)).toBe(entries[0]);
  expect(causeOf(charge({ kind: 'extension', created_at: at(4000) }), entries)).toBe(entries[2]);
  expect(causeOf(charge({ kind: 'fee' }), entries)).toBeUndefined();
});

it('finds the transition that made a charge, whose entry is written at its end', () => {
  const entries = [
    entry({ action: 'rental.start', actor: 'anna', at: at(40), latency_ms: 40_000 }),
    entry({ action: 'rental.end', actor: 'anna', at: at(900), latency_ms: 3000 }),
  ];
  expect(causeOf(charge({ created_at: at(0.1) }), entries)).toBe(entries[0]);
  expect(causeOf(charge({ kind: 'end', created_at: at(900) }), entries)).toBe(entries[1]);
  expect(endOfDeposit(charge({ kind: 'deposit', goal: 'release' }), entries)).toBe(entries[1]);
});

it('finds who ended a deposit', () => {
  const entries = [entry({ action: 'booking.end', actor: 'eva' }), entry({ action: 'booking.deposit_capture', actor: 'zoe' })];
  expect(endOfDeposit(charge({ kind: 'deposit', goal: 'hold' }), entries)).toBeUndefined();
  expect(endOfDeposit(charge({ kind: 'deposit', goal: 'capture' }), entries)?.actor).toBe('zoe');
  expect(endOfDeposit(charge({ kind: 'deposit', goal: 'release' }), entries)?.actor).toBe('eva');
});

it('lists the tries of a charge', () => {
  const entries = [
    moved(3600, 'fee', 2, 'paid'),
    moved(10, 'fee', 2, 'declined', 'insufficient_funds'),
    moved(5, 'fee', 1, 'paid'),
    moved(1, 'start', 2, 'paid'),
  ];
  expect(triesOf(charge({ kind: 'fee', number: 2, paid_at: at(3600) }), entries)).toEqual([
    { at: at(10), state: 'declined', code: 'insufficient_funds' },
    { at: at(3600), state: 'paid', code: null },
  ]);
  // Without entries, what the charge itself says.
  expect(triesOf(charge({ paid_at: at(2) }), [])).toEqual([{ at: at(2), state: 'paid', code: null }]);
  expect(triesOf(charge({ state: 'pending' }), [])).toEqual([{ at: at(0), state: 'pending', code: null }]);
});

it('finds a second charge for the same', () => {
  const fees = [
    charge({ id: 'a', kind: 'fee', fee: 'cleaning' }),
    charge({ id: 'b', kind: 'fee', fee: 'cleaning', number: 2 }),
    charge({ id: 'c', kind: 'fee', fee: 'damage', number: 3 }),
  ];
  expect(twinOf(fees[0]!, fees)?.id).toBe('b');
  expect(twinOf(fees[2]!, fees)).toBeUndefined();
  expect(twinOf(fees[0]!, [fees[0]!, { ...fees[1]!, state: 'failed' }])).toBeUndefined();
  expect(twinOf(fees[0]!, [...fees, charge({ id: 'r', kind: 'refund', refund_of: 'b' })])).toBeUndefined();
});

it('tells all in order, each thing once', () => {
  const command = { id: 'c1', booking_id: 2, requested_at: at(60), completed_at: at(62), state: 'succeeded' } as Command;
  const other = { id: 'c2', booking_id: null, requested_at: at(120), completed_at: null, state: 'unknown' } as Command;
  const entries = [
    entry({ action: 'booking.create', at: at(-3600) }),
    entry({ action: 'booking.start', at: at(0) }),
    moved(2, 'start', 1, 'paid'),
    entry({ action: 'command.unlock', at: at(62), command_id: 'c1' }),
    entry({ action: 'command.unlock', at: at(70), outcome: 'not_executed', code: 'payment_required' }),
    entry({ action: 'booking.refund', at: at(80), outcome: 'not_executed', code: 'refund_exceeds_paid' }),
    entry({ action: 'booking.fee', at: at(90), code: 'idempotency_replayed' }),
    entry({ action: 'history.read', at: at(95) }),
  ];
  const charges = [
    charge({ paid_at: at(2) }),
    charge({ id: 'f', kind: 'fee', state: 'declined', created_at: at(100), next_attempt_at: at(3700) }),
  ];
  const story = bookingStory(booking(charges), entries, [other, command], Date.parse(at(200)));
  expect(story.map((h) => [h.kind, h.subject, h.tone, h.ahead])).toEqual([
    ['request', 'booking', 'good', false],
    ['agreedStart', 'booking', 'plain', false],
    ['request', 'booking', 'good', false],
    ['charge', 'payments', 'good', false],
    ['command', 'client', 'good', false],
    ['refused', 'client', 'bad', false],
    ['refused', 'booking', 'bad', false],
    ['repeated', 'booking', 'plain', false],
    ['charge', 'fees', 'bad', false],
    ['command', 'others', 'warn', false],
    ['next', 'fees', 'open', true],
    ['agreedEnd', 'booking', 'plain', true],
  ]);
});
