import { expect, it } from 'vitest';
import type { Activity, Command } from '../api/client';
import { story } from './story';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 2, 10) + seconds * 1000).toISOString();
const command = (change: Partial<Command>) =>
  ({
    id: 'c',
    state: 'succeeded',
    late: false,
    requested_at: at(0),
    sent_at: at(0.1),
    published_at: [at(0.1), at(2.1)],
    received_at: at(2.5),
    completed_at: at(3),
    deadline: at(10),
    expires_at: at(11),
    ...change,
  }) as Command;
const entry = (seconds: number, change: Partial<Activity> = {}) =>
  ({ id: seconds, command_id: 'c', at: at(seconds), outcome: 'executed', ...change }) as Activity;
const kinds = (c: Command, entries: Activity[], now: number) =>
  story(c, entries, Date.parse(at(now))).map((s) => (s.n ? `${s.kind} ${s.n}` : s.kind) + (s.ahead ? '…' : ''));

it('tells what happened in order', () => {
  expect(kinds(command({}), [entry(3)], 4)).toEqual(['ordered', 'published 1', 'published 2', 'received', 'ended', 'answered']);
});

it('has no end while none is known, and tells what is still to come', () => {
  const open = command({ state: 'sent', completed_at: null, received_at: null });
  expect(kinds(open, [], 4)).toEqual(['ordered', 'published 1', 'published 2', 'deadline…', 'expiry…']);
  const unknown = command({ state: 'unknown', completed_at: at(10), received_at: null });
  expect(kinds(unknown, [entry(10, { outcome: 'unknown' })], 60)).toEqual([
    'ordered',
    'published 1',
    'published 2',
    'deadline',
    'answered',
    'expiry',
  ]);
});

it('tells both what the caller got at the deadline and the late answer', () => {
  const late = command({ late: true, completed_at: at(25), received_at: null });
  expect(kinds(late, [entry(25.1, { late: true }), entry(10, { outcome: 'unknown' })], 60)).toEqual([
    'ordered',
    'published 1',
    'published 2',
    'deadline',
    'answered',
    'expiry',
    'late',
    'answered',
  ]);
});

it('leaves out what is recorded of other commands', () => {
  expect(kinds(command({}), [entry(3, { command_id: 'other' })], 60)).not.toContain('answered');
});
