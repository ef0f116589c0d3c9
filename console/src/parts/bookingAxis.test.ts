import { expect, it } from 'vitest';
import { axis, cluster } from './bookingAxis';

const hour = 3_600_000;
const from = Date.UTC(2026, 0, 2, 8);
const to = from + 8 * hour;

it('draws the booking in proportion', () => {
  const { parts, x } = axis(from, to, [from + hour, to - hour], 100, 900);
  expect(parts.map((p) => [p.left, p.right, p.short])).toEqual([[100, 900, false]]);
  expect(x(from + 4 * hour)).toBeCloseTo(500);
  expect(x(from + 2 * hour) - x(from)).toBeCloseTo(x(to) - x(to - 2 * hour));
  expect(x(from)).toBeGreaterThan(100); // a mark there is whole
});

it('makes what is far away short, and keeps the order', () => {
  const made = from - 21 * 24 * hour;
  const refunded = to + 5 * 24 * hour;
  const { parts, x } = axis(from, to, [made, from + hour, refunded], 100, 900);
  expect(parts.map((p) => p.short)).toEqual([true, false, true]);
  expect(parts[1]!.right - parts[1]!.left).toBeGreaterThan(500);
  const places = [made, from - hour, from, from + hour, to, to + 24 * hour, refunded].map(x);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places[0]).toBeGreaterThan(100);
  expect(places.at(-1)).toBeLessThan(900);
});

it('draws what is near in proportion', () => {
  expect(axis(from, to, [from - hour, to + hour], 0, 800).parts).toHaveLength(1);
});

it('keeps within the edges', () => {
  const { x } = axis(from, to, [], 100, 900);
  expect([x(from - 99 * hour), x(to + 99 * hour)]).toEqual([100, 900]);
});

it.each([
  [800, 1],
  [200, 8],
])('has ticks at whole hours that fit into %s pixels', (width, step) => {
  const { ticks } = axis(from, to, [], 0, width);
  expect(ticks.length).toBeGreaterThanOrEqual(1);
  expect(ticks.length).toBeLessThanOrEqual(width / 85 + 1);
  for (const tick of ticks) expect(new Date(tick.at).getMinutes()).toBe(0); // of any time zone
  if (step === 1) expect(ticks[1]!.at - ticks[0]!.at).toBe(hour);
});

it('draws the shortest and the longest booking', () => {
  expect(axis(from, from, [from], 0, 800).ticks.length).toBeGreaterThan(0);
  expect(axis(from, from + 366 * 24 * hour, [], 0, 800).ticks.length).toBeLessThan(15);
});

it('puts marks together that would cover each other', () => {
  const clusters = cluster([{ x: 50 }, { x: 10 }, { x: 12 }, { x: 19 }], 10);
  expect(clusters.map((c) => [c.x, c.marks.length])).toEqual([
    [10, 3],
    [50, 1],
  ]);
});
