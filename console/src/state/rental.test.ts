import { expect, it } from 'vitest';
import type { AdminBooking, ReturnCheck, Transition } from '../api/client';
import { de } from '../texts/de';
import { en } from '../texts/en';
import { checkText, needsStaff, overrideText, sinceOf, toDo, toneOfTransition, waitsFor } from './rental';

const transition = (change: Partial<Transition> = {}) =>
  ({
    id: '0193-b', kind: 'start', state: 'open', step: 'confirm', needs_staff: false, next: ['wait'],
    steps: [
      { name: 'check', state: 'done', at: '2026-01-02T10:00:00.000Z' },
      { name: 'confirm', state: 'unknown', at: '2026-01-02T10:00:09.000Z' },
      { name: 'book', state: 'pending', at: null },
    ],
    ...change,
  }) as Transition;

it('says what a transition waits for, and since when', () => {
  expect(sinceOf(transition())).toBe('2026-01-02T10:00:09.000Z');
  expect(waitsFor(transition(), en)).toBe(en.rental.waits.confirm);
  expect(waitsFor(transition({ kind: 'end' }), en)).toBe(en.rental.waits.confirmEnd);
  expect(waitsFor(transition({ step: 'pay' }), en)).toBe(en.rental.waits.pay);
  expect(waitsFor(transition({ step: 'pay', next: ['confirm_payment', 'cancel'] }), en)).toBe(en.rental.waits.owner);
  expect(waitsFor(transition({ state: 'done', step: null }), en)).toBe('');
  expect(sinceOf(transition({ steps: [] }))).toBeNull();
});

it('says what a person can do, and has done', () => {
  const words = en.rental.todo;
  expect(toDo(transition(), en)).toBe(words.start);
  expect(toDo(transition({ step: 'undo' }), en)).toBe(words.undo);
  expect(toDo(transition({ step: 'refund' }), en)).toBe(words.payments);
  expect(toDo(transition({ kind: 'end' }), en)).toBe(words.end);
  expect(toDo(transition({ kind: 'end', step: 'book' }), en)).toBe(words.payments);
  expect(overrideText(transition({ override: null }), en)).toBe('');
  expect(overrideText(transition({ override: 'It is locked.' }), en)).toBe('Given up without the vehicle: It is locked.');
  expect(overrideText(transition({ kind: 'end', override: 'It was towed.' }), en)).toBe('Without the return check: It was towed.');
});

it('marks what is not known, and what waits for a person', () => {
  expect([
    toneOfTransition(transition()),
    toneOfTransition(transition({ step: 'command' })),
    toneOfTransition(transition({ step: 'command', needs_staff: true })),
    toneOfTransition(transition({ state: 'done' })),
    toneOfTransition(transition({ state: 'failed' })),
  ]).toEqual(['warn', 'open', 'warn', 'good', 'bad']);
});

it('takes the newer of an event and what was read', () => {
  const read = (t: Transition | null) => ({ transition: t }) as AdminBooking;
  const event = (id: string, state: string, needs_staff: boolean) =>
    ({ vehicle_id: 1, booking_id: 1, transition: { id, state, needs_staff } });
  expect(needsStaff(read(null), undefined)).toBe(false);
  expect(needsStaff(read(transition({ needs_staff: true })), undefined)).toBe(true);
  expect(needsStaff(read(transition()), event('0193-b', 'open', true))).toBe(true);
  expect(needsStaff(read(transition({ needs_staff: true })), event('0193-b', 'done', false))).toBe(false);
  expect(needsStaff(read(transition({ needs_staff: true })), event('0193-a', 'done', false))).toBe(true);
  expect(needsStaff(read(null), event('0193-c', 'open', true))).toBe(true);
  expect(needsStaff({} as AdminBooking, undefined)).toBe(false); // of an instance of the version before
});

it.each([
  ['doors', 'closed', 'front left open, rear right unknown', 'zu', 'vorne links offen, hinten rechts nicht gemeldet'],
  ['windows', 'closed', 'sunroof tilted, front right partially_open', 'zu', 'Schiebedach gekippt, vorne rechts teils offen'],
  [
    'parked', 'gear P, or parking brake engaged', 'gear D, parking brake released', 'Gang P, oder Parkbremse angezogen',
    'Gang D, Parkbremse gelöst',
  ],
  ['fresh', 'a report of the last 30 s', '5 min ago', 'eine Meldung der letzten 30 s', 'vor 5 min'],
  ['place', 'outside', 'located 3 h ago', 'außerhalb', 'Position von vor 3 h'],
  ['place', 'within 100 m of open air', '1240 m away', 'höchstens 100 m von open air', '1240 m entfernt'],
  [
    'place', 'in the area where rentals may end', 'outside', 'im Gebiet, in dem Mieten enden dürfen', 'außerhalb',
  ],
  ['charging_cable', 'plugged in', 'disconnected', 'angesteckt', 'nicht angesteckt'],
  ['key', 'in', 'out', 'im Fahrzeug', 'nicht im Fahrzeug'],
] as [ReturnCheck['name'], string, string, string, string][])(
  'says the condition %s in both languages: %s, %s',
  (name, expected, reported, expectedDe, reportedDe) => {
    const check = { name, ok: false, expected, reported };
    expect(checkText(check, en)).toEqual({ expected, reported });
    expect(checkText(check, de)).toEqual({ expected: expectedDe, reported: reportedDe });
  },
);
