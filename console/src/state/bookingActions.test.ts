import { expect, it } from 'vitest';
import type { AdminBooking, Me } from '../api/client';
import { en } from '../texts/en';
import { changes, whyNotChanged, type Change } from './bookingActions';

const now = Date.parse('2026-01-02T10:00:00.000Z');
const booking = (change: object) =>
  ({
    status: 'active',
    end_date: '2026-01-02T18:00:00.000Z',
    limits: { refund: 142.8, capture: 200, fee: 1700 },
    payment: { charged: 142.8 },
    charges: [],
    ...change,
  }) as unknown as AdminBooking;
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
] as [Change, object, string][])('says why %s is off', (change, state, want) =>
  expect(whyNotChanged(change, booking(state), me('administrator'), now, en)).toBe(want),
);
