import { expect, it } from 'vitest';
import type { Command } from '../api/client';
import { serverTime } from '../api/servertime';
import { filtersOf, namesOf, parametersOf, passes, timeOf, vehiclesOf, type Filters } from './match';

const command = {
  state: 'unknown',
  outcome: 'unknown',
  vehicle_id: 4,
  requested_by: 'zoe',
  requested_at: '2026-01-02T10:00:00.000Z',
} as Command;
const plates = [
  { id: 1, plate: 'M-IM 2101' },
  { id: 3, plate: '852' },
  { id: 4, plate: 'B-SP 1' },
  { id: 5, plate: 'b-sp1' },
];
const none: Filters = { state: '', outcome: '', vehicle_id: '', actor: '', from: '', to: '' };

it.each([
  [{}, true],
  [{ state: 'failed,unknown' }, true],
  [{ state: 'failed' }, false],
  [{ outcome: 'executed' }, false],
  [{ vehicle_id: '4', actor: 'zoe' }, true],
  [{ vehicle_id: '40' }, false],
  [{ actor: 'zo' }, false],
  [{ from: '2026-01-02T10:00:00.000Z', to: '2026-01-02T10:00:00.001Z' }, true],
  [{ from: '2026-01-02T10:00:00.001Z' }, false],
  [{ to: '2026-01-02T10:00:00.000Z' }, false],
  [{ from: 'x', to: '2026-13-01T10:00' }, true],
])('%o passes: %s', (change, want) => expect(passes(command, { ...none, ...change })).toBe(want));

it('leaves out times that are none', () => {
  expect(parametersOf(filtersOf({ actor: 'zoe', from: 'x', to: '2026-13-01T10:00' })).toString()).toBe('actor=zoe');
});

it('leaves out filters that are not set', () => {
  expect(parametersOf(filtersOf({ state: '', actor: 'a b', from: '2026-01-02T10:00:00Z' })).toString()).toBe(
    'actor=a+b&from=2026-01-02T10%3A00%3A00.000Z',
  );
});

it.each([
  ['m-im 2101', ['1']],
  ['MIM2101', ['1']],
  ['852', ['3']],
  ['17', ['17']],
  ['B-SP 1', ['4', '5']],
  ['B-SP 1 (#5)', ['5']],
  ['M-XX 1', []],
])('takes %o for vehicles %o', (text, ids) => expect(vehiclesOf(text, plates)).toEqual(ids));

it('names vehicles that differ by their ids alone with these', () => {
  expect([...namesOf(plates).values()]).toEqual(['M-IM 2101', '852', 'B-SP 1 (#4)', 'b-sp1 (#5)']);
});

it('a time of a filter is an instant, or one before now', () => {
  const now = Date.parse('2026-01-02T10:00:00Z');
  expect(timeOf('-1h', now)).toBe(now - 3_600_000);
  expect(timeOf('-7d', now)).toBe(now - 7 * 86_400_000);
  expect(timeOf('2026-01-02T10:00:00Z')).toBe(now);
  expect(timeOf('-7x')).toBeNaN();
});

it('counts hours from the time of the service, also where the clock of the browser is wrong', () => {
  serverTime.offset = -3_600_000;
  expect(Math.abs(timeOf('-1h') - (Date.now() - 2 * 3_600_000))).toBeLessThan(1000);
  serverTime.offset = 0;
});
