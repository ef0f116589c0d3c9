import { describe, expect, it } from 'vitest';
import { hasEarlier, offered, spanAt } from './span';

describe('spans', () => {
  it('are offered as far as something is kept', () => {
    expect(offered(null, false)).toEqual(['hour', 'six', 'day', 'three', 'week']);
    expect(offered(7, true)).toEqual(['hour', 'six', 'day', 'three', 'week', 'booking']);
    expect(offered(1, false)).toEqual(['hour', 'six', 'day']);
    expect(offered(2, false)).toEqual(['hour', 'six', 'day', 'three']);
    expect(offered(30, false)).toEqual(['hour', 'six', 'day', 'three', 'week', 'all']);
    expect(offered(0, false)).toEqual([]);
  });
  it('go back in steps of their length', () => {
    const hour = 3_600_000;
    expect(spanAt('hour', 0, 7, 100 * hour)).toEqual({ from: 99 * hour, to: 100 * hour });
    expect(spanAt('six', 2, 7, 100 * hour)).toEqual({ from: 82 * hour, to: 88 * hour });
    expect(spanAt('all', 0, 366, 1000 * hour)).toEqual({ from: 256 * hour, to: 1000 * hour });
    expect(hasEarlier(spanAt('week', 0, 7, 1000 * hour), 7, 1000 * hour)).toBe(false);
    expect(hasEarlier(spanAt('day', 5, 7, 1000 * hour), 7, 1000 * hour)).toBe(true);
    expect(hasEarlier(spanAt('day', 6, 7, 1000 * hour), 7, 1000 * hour)).toBe(false);
  });
});
