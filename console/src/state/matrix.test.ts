import { expect, it } from 'vitest';
import type { BulkCommand, Command } from '../api/client';
import { count, isStale, rowsOf } from './matrix';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 2, 10) + seconds * 1000).toISOString();
const command = (id: string, change: Partial<Command> = {}) =>
  ({
    id,
    state: 'sent',
    outcome: null,
    late: false,
    attempts: 1,
    requested_at: at(0),
    sent_at: at(0.1),
    published_at: [at(0.1)],
    received_at: null,
    completed_at: null,
    ...change,
  }) as Command;
const bulk = (...items: object[]) => ({ items }) as unknown as BulkCommand;
const none = () => undefined;

it('has a row for each vehicle: not sent yet, refused, open', () => {
  const rows = rowsOf(
    bulk(
      { vehicle_id: 1, command: null, error: null, message: null },
      { vehicle_id: 5, command: null, error: { code: 'vehicle_offline' }, message: 'The vehicle is offline.' },
      { vehicle_id: 2, command: command('b'), error: null, message: null },
    ),
    none,
  );
  expect(rows.map((r) => [r.vehicle, r.kind, r.message])).toEqual([
    [1, 'open', null],
    [5, 'refused', 'The vehicle is offline.'],
    [2, 'open', null],
  ]);
  expect(rows[2]?.took).toBeNull();
  expect(count(rows)).toEqual({ open: 2, executed: 0, refused: 1, not_executed: 0, failed: 0, unknown: 0 });
  expect(isStale(rows)).toBe(false);
});

it('takes what an event says, and lacks the reason until the bulk is read again', () => {
  const failed = command('b', { state: 'failed', outcome: 'failed', completed_at: at(1) });
  const rows = rowsOf(bulk({ vehicle_id: 2, command: command('b'), error: null, message: null }), () => failed);
  expect(rows[0]).toMatchObject({ kind: 'failed', message: null });
  expect(isStale(rows)).toBe(true);
});

it('a late answer settles what was unknown', () => {
  const unknown = command('b', { state: 'unknown', outcome: 'unknown', completed_at: at(10) });
  const late = command('b', { state: 'succeeded', outcome: 'executed', completed_at: at(25), late: true });
  const read = bulk({ vehicle_id: 8, command: unknown, error: { code: 'command_timeout' }, message: 'It may have done it.' });
  expect(rowsOf(read, none)[0]).toMatchObject({ kind: 'unknown', message: 'It may have done it.' });
  const rows = rowsOf(read, () => late);
  expect(rows[0]).toMatchObject({ kind: 'executed', message: null, took: 25_000 });
  expect(isStale(rows)).toBe(false);
});

it('does not go back to what an old event said', () => {
  const done = command('b', { state: 'succeeded', outcome: 'executed', completed_at: at(1) });
  expect(rowsOf(bulk({ vehicle_id: 2, command: done, error: null, message: null }), () => command('b'))[0]?.kind).toBe('executed');
});
