import { expect, it } from 'vitest';
import { ServerTime } from './servertime';

const hour = 3_600_000;

it('knows how wrong the clock of the browser is', () => {
  const time = new ServerTime();
  time.update(hour + 1_000_050, 1_000_000, 1_000_100);
  expect(time.offset).toBe(hour);
  expect(time.now()).toBeGreaterThan(Date.now() + hour - 1000);
});

it('believes the fastest answer', () => {
  const time = new ServerTime();
  time.update(1_000_050, 1_000_000, 1_000_100);
  time.update(2_009_900, 2_000_000, 2_010_000); // waited ten seconds for a vehicle
  expect(time.offset).toBe(0);
  time.update(3_000_000, 3_000_000, 3_000_020);
  expect(time.offset).toBe(-10);
});

it('notices a clock that was set', () => {
  const time = new ServerTime();
  time.update(1_000_005, 1_000_000, 1_000_010);
  time.update(hour + 5_000_100, 5_000_000, 5_000_200);
  expect(time.offset).toBe(hour);
});

it('ignores an answer without a time', () => {
  const time = new ServerTime();
  time.update(NaN, 0, 10);
  expect(time.offset).toBe(0);
});
