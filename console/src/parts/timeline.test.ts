import { expect, it } from 'vitest';
import type { Command } from '../api/client';
import { lay } from './timeline';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 2, 10) + seconds * 1000).toISOString();
const command = (change: Partial<Command>) =>
  ({
    state: 'succeeded',
    requested_at: at(0),
    sent_at: at(0.1),
    published_at: [at(0.1), at(2.1)],
    received_at: at(2.5),
    completed_at: at(3),
    deadline: at(10),
    expires_at: at(10.9),
    ...change,
  }) as Command;

it('marks what happened, in order', () => {
  const drawing = lay(command({}), Date.parse(at(60)));
  expect(drawing.marks.map((m) => [m.lane, m.at])).toEqual([
    ['record', 0],
    ['published', 100],
    ['published', 2100],
    ['received', 2500],
    ['executed', 3000],
  ]);
  expect(drawing.call).toEqual({ until: 3000, open: false });
  expect(drawing.unknown).toBeNull();
  expect(drawing.span).toBeLessThan(4000); // as long as it lived
  expect([drawing.deadline, drawing.expiry]).toEqual([null, null]);
});

it('hatches what is not known until it settles', () => {
  const open = lay(command({ state: 'sent', completed_at: null, received_at: null }), Date.parse(at(4)));
  expect(open.unknown).toEqual({ from: 100, until: 4000 });
  expect(open.call).toEqual({ until: 4000, open: true });
  expect([open.deadline, open.expiry]).toEqual([10_000, 10_900]);
  const unknown = lay(command({ state: 'unknown', completed_at: at(10), received_at: null }), Date.parse(at(60)));
  expect(unknown.unknown).toEqual({ from: 100, until: unknown.span }); // still
  expect(unknown.marks.some((m) => m.lane === 'executed')).toBe(false);
});

it('shows a late answer after the call has ended', () => {
  const late = lay(command({ late: true, completed_at: at(25) }), Date.parse(at(60)));
  expect(late.call.until).toBe(10000);
  expect(late.marks.at(-1)).toMatchObject({ lane: 'executed', at: 25000 });
  expect(late.span).toBeGreaterThan(25000);
  expect(late.unknown).toEqual({ from: 10000, until: 25000 });
  expect(late.deadline).toBe(10_000);
});

it('draws a command that was never sent', () => {
  const never = lay(
    command({ state: 'expired', sent_at: null, published_at: [], received_at: null, completed_at: at(10) }),
    Date.parse(at(60)),
  );
  expect(never.marks).toEqual([{ lane: 'record', at: 0, kind: 'point' }]);
  expect(never.unknown).toBeNull();
});
