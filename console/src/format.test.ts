import { expect, it } from 'vitest';
import { age, energy, moment, took } from './format';
import { de } from './texts/de';
import { en } from './texts/en';

const now = Date.parse('2026-01-02T10:00:00.000Z');

it.each([
  ['2026-01-02T10:00:30.000Z', 'now'],
  ['2026-01-02T09:59:59.000Z', 'now'],
  ['2026-01-02T09:59:30.000Z', '30 s ago'],
  ['2026-01-02T09:58:20.000Z', '2 min ago'],
  ['2026-01-02T07:00:00.000Z', '3 h ago'],
  ['2025-12-30T10:00:00.000Z', '3 d ago'],
  [null, 'never'],
])('age of %s is %s', (at, want) => expect(age(at, now, en)).toBe(want));

it('shows the battery before the tank', () => {
  expect(energy({ battery_level_percent: 0, fuel_level_percent: 80 })).toBe(0);
  expect(energy({ battery_level_percent: null, fuel_level_percent: null })).toBeNull();
});

it('has every text in each language', () => {
  const paths = (texts: object, at = ''): string[] =>
    Object.entries(texts).flatMap(([key, value]) =>
      typeof value === 'object' ? paths(value, `${at}${key}.`) : value === '' && key !== 'succeeded' ? [`empty ${at}${key}`] : [`${at}${key}`],
    );
  // The API says its refusals in English.
  const inBoth = (texts: object) => paths(texts).filter((path) => !path.startsWith('refusals.'));
  expect(inBoth(de)).toEqual(inBoth(en));
});

it.each([
  [34.4, '34 ms'],
  [999, '999 ms'],
  [6940, '6.9 s'],
])('%s ms took %s', (ms, want) => expect(took(ms)).toBe(want));

it('names the day of a moment unless it is today', () => {
  const at = new Date(2026, 0, 2, 9, 5).getTime();
  expect(moment(at, 'en', new Date(2026, 0, 2, 23).getTime())).toBe('09:05');
  expect(moment(at, 'de', new Date(2026, 0, 3, 1).getTime())).toBe('Fr., 2. Jan., 09:05');
});
