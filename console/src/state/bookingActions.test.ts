import { expect, it } from 'vitest';
import type { AdminBooking, Me } from '../api/client';
import { en } from '../texts/en';
import { changesOf, movesOf, pathOf, whyNotChanged, type Change } from './bookingActions';

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
const on = (level: Me['level'], change: object = {}) =>
  changesOf(booking(change)).filter((c) => whyNotChanged(c, booking(change), me(level), now, en) === '');

it('lets a role do what the API lets it', () => {
  expect(on('administrator')).toEqual(['end', 'refund', 'capture', 'fee']);
  expect(on('operator')).toEqual(['end']);
  expect(on('viewer')).toEqual([]);
  expect(on('operator', { end_date: '2026-01-02T10:00:00.000Z' })).toEqual(['end', 'extend']);
  const upcoming = { status: 'upcoming', limits: { refund: 0, capture: 0, fee: 0 }, payment: { charged: 0 } };
  expect(on('administrator', upcoming)).toEqual(['start', 'vehicle', 'cancel']);
  expect(on('operator', { ...upcoming, can_extend: true })).toEqual(['start', 'extend', 'vehicle', 'cancel']);
  expect(on('administrator', { ...upcoming, end_date: '2026-01-02T10:00:00.000Z' })).toEqual(['vehicle', 'cancel']);
  expect(on('administrator', { ...upcoming, charges: [{}] })).toEqual(['start', 'cancel']);
});

it.each([
  ['end', { status: 'completed' }, en.booking.off.status('completed')],
  ['refund', { limits: { refund: 0 } }, en.booking.off.allBack],
  ['capture', { limits: { capture: 0 }, charges: [{ kind: 'deposit', goal: 'capture' }] }, en.booking.off.captured],
  ['capture', { limits: { capture: 0 }, charges: [{ kind: 'deposit', goal: 'release' }] }, en.booking.off.status('active')],
] as [Change, object, string][])('says why %s is off', (change, state, want) =>
  expect(whyNotChanged(change, booking(state), me('administrator'), now, en)).toBe(want),
);

it('has no buttons for what its state excludes', () => {
  const nothing = { limits: { refund: 0, capture: 0, fee: 0 }, payment: { charged: 0 } };
  expect(changesOf(booking({ status: 'cancelled', ...nothing }))).toEqual([]);
  expect(changesOf(booking({ status: 'completed' }))).toEqual(['refund', 'capture', 'fee']);
  expect(movesOf(booking({ status: 'upcoming' }))).toEqual(['rental/start']);
});

const moves = (change: object = {}) =>
  movesOf(booking(change)).filter((c) => whyNotChanged(c, booking(change), me('operator'), now, en) === '');
const open = (kind: string, step: string) => ({ transition: { id: 't1', kind, step, state: 'open' } });

it.each([
  ['before the rental', { status: 'upcoming' }, ['rental/start']],
  ['in the rental', {}, ['rental/pause', 'rental/end', 'override']],
  ['in a pause', { paused: true }, ['rental/resume', 'rental/end', 'override']],
  ['after the rental', { status: 'completed' }, []],
  ['while a start is paid', { status: 'upcoming', ...open('start', 'pay') }, ['giveUp']],
  ['while a start is on its way', { status: 'upcoming', ...open('start', 'command') }, []],
  ['while a start is not known', { status: 'upcoming', ...open('start', 'confirm') }, ['rental/start', 'giveUp']],
  ['while a start is undone', { status: 'upcoming', ...open('start', 'undo') }, ['overrideStart']],
  ['while a start is refunded', { status: 'upcoming', ...open('start', 'refund') }, []],
  ['while an end is on its way', open('end', 'command'), ['override']],
  ['while an end is not known', open('end', 'confirm'), ['rental/end', 'override']],
  ['while a pause is not known', open('pause', 'confirm'), ['rental/pause']],
] as [string, object, string[]][])('lets staff do for the client what is possible %s', (_, state, want) =>
  expect(moves(state)).toEqual(want),
);

it('does nothing by hand while a transition is open', () => {
  const state = { status: 'upcoming', ...open('start', 'confirm') };
  expect(whyNotChanged('start', booking(state), me('administrator'), now, en)).toBe(en.booking.off.inTransition('Start'));
  expect(whyNotChanged('rental/start', booking(state), me('viewer'), now, en)).toBe(en.off.viewer);
});

it('sends each change to its address', () => {
  expect(pathOf({ change: 'override' })).toBe('rental/end');
  expect(pathOf({ change: 'overrideStart' })).toBe('rental/start');
  expect(pathOf({ change: 'giveUp', transition: 't1' })).toBe('transitions/t1/cancel');
  expect(pathOf({ change: 'rental/pause' })).toBe('rental/pause');
  expect(pathOf({ change: 'start' })).toBe('start');
  expect(pathOf({ change: 'capture' })).toBe('deposit/capture');
});
