import { expect, it, vi } from 'vitest';
import { age, energy, inputTime, instantOf, moment, number, percent, took, zoneName } from './format';
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
      typeof value === 'object'
        ? paths(value, `${at}${key}.`)
        : value === '' && key !== 'succeeded'
          ? [`empty ${at}${key}`]
          : [`${at}${key}`],
    );
  expect(paths(de)).toEqual(paths(en));
});

it.each([
  [34.4, '34 ms'],
  [999, '999 ms'],
  [6940, '6.9 s'],
  [9960, '10 s'],
  [75_300, '75 s'],
])('%s ms took %s', (ms, want) => expect(took(ms, 'en')).toBe(want));

it('names the day of a moment unless it is today', () => {
  const at = new Date(2026, 0, 2, 9, 5).getTime();
  expect(moment(at, 'en', new Date(2026, 0, 2, 23).getTime())).toBe('09:05');
  expect(moment(at, 'de', new Date(2026, 0, 3, 1).getTime())).toBe('Fr., 2. Jan., 09:05');
  expect(moment(at, 'en-GB', new Date(2027, 0, 3).getTime())).toBe('Fri, 2 Jan 2026, 09:05');
});

it('writes in the locale of the pages', () => {
  expect([number(1234.5, 'de', 1), percent(61.4, 'de'), took(6940, 'de')]).toEqual(['1.234,5', '61 %', '6,9 s']);
  expect(moment(new Date(2026, 0, 2, 0, 5).getTime(), 'en-US', new Date(2026, 0, 2, 23).getTime(), 'second')).toBe('00:05:00');
  expect(zoneName('en-GB')).toBe(new Date().toLocaleTimeString('en-GB', { timeZoneName: 'short' }).split(' ').at(-1));
});

// What is written in another way is not in the language of the pages, or in another form than the time next to it.
const sources = import.meta.glob('./**/*.{ts,svelte}', { query: '?raw', import: 'default', eager: true }) as Record<string, string>;
it('is alone in writing times and numbers', () => {
  const others = Object.entries(sources).filter(([name]) => !/\.test\.ts$|^\.\/(format|money)\.ts$|contract\.d\.ts$/.test(name));
  expect(others.length).toBeGreaterThan(80);
  expect(others.filter(([, text]) => /\.toLocale\w*\(|\bIntl\.|\.toFixed\(|\.toDateString\(/.test(text)).map(([name]) => name)).toEqual([]);
});

it('names the zone of a moment that has another one than now', () => {
  const winter = Date.parse('2026-01-15T12:00:00Z');
  const summer = Date.parse('2026-07-15T12:00:00Z');
  const differs = new Date(winter).getTimezoneOffset() !== new Date(summer).getTimezoneOffset();
  expect(moment(summer, 'en-GB', winter).split(' ').length).toBe(differs ? 5 : 4);
});

it('means the second of a repeated hour once the first is over', () => {
  vi.stubEnv('TZ', 'Europe/Berlin'); // clocks are set back from 3:00 to 2:00
  const [first, second] = [Date.parse('2026-10-25T00:30:00Z'), Date.parse('2026-10-25T01:30:00Z')];
  expect(inputTime(new Date(second))).toBe(inputTime(new Date(first)));
  expect(instantOf('2026-10-25T02:30', first - 1).getTime()).toBe(first);
  expect(instantOf('2026-10-25T02:30', first).getTime()).toBe(second);
  expect(instantOf('2026-10-25T04:30', second).toISOString()).toBe('2026-10-25T03:30:00.000Z');
  expect(instantOf('', now).getTime()).toBeNaN();
  vi.unstubAllEnvs();
});
