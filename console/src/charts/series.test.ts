import { describe, expect, it } from 'vitest';
import type { VehicleHistory } from '../api/client';
import { extremes, isEmpty, rows, series } from './series';

const begin = Date.parse('2026-01-02T00:00:00.000Z');
const minutes = (n: number) => begin + n * 60_000;
const iso = (ms: number) => new Date(ms).toISOString();

/** A history of buckets of a minute: minute, and the energy, or null. */
function history(values: [number, number | null][], until = 60): VehicleHistory {
  const energy = values.map(([, value]) => value);
  const none = { min: energy.map(() => null), avg: energy.map(() => null), max: energy.map(() => null) };
  return {
    vehicle_id: 1,
    from: iso(begin),
    to: iso(minutes(until)),
    retention_days: 7,
    bucket_seconds: 60,
    times: values.map(([at]) => iso(minutes(at))),
    energy: { min: energy.map((e) => e && e - 1), avg: energy, max: energy.map((e) => e && e + 1) },
    voltage: none, speed: none, signal: null, position: null, locked: null, ignition: null,
  };
}

describe('series', () => {
  it('break where the vehicle was silent, and not where it reported less', () => {
    const got = series(history([[0, 50], [8, 49], [9, null], [18, 48], [40, 40], [55, 39], [56, 38]]), 'energy');
    expect(got.mean).toEqual([50, 49, 48, null, 40, null, 39, 38]);
    expect(got.min).toEqual([49, 48, 47, null, 39, null, 38, 37]);
    expect(got.at.slice(2, 5)).toEqual([minutes(18.5), minutes(18.5) + 1, minutes(40.5)]);
    expect(got.alone).toEqual([4]);
    expect(got.at).toEqual([...got.at].sort((a, b) => a - b));
  });
  it('of a value that is zero, or that was not requested', () => {
    expect(series(history([[0, 0]]), 'energy')).toMatchObject({ mean: [0], alone: [0] });
    expect(series(history([[0, 50]]), 'signal')).toEqual({ at: [], min: [], mean: [], max: [], alone: [] });
  });
  it('have a sentence', () => {
    expect(
      extremes(
        series(
          history([
            [0, 50],
            [1, 40],
            [2, 45],
          ]),
          'energy',
        ),
      ),
    ).toEqual({ latest: 45, latestAt: minutes(2.5), min: 39, max: 51 });
    expect(extremes(series(history([]), 'energy'))).toBeNull();
  });
});

describe('rows', () => {
  it('join what was reported in each step', () => {
    const got = rows(history([[0, 50], [4, 40], [5, 30]], 15));
    expect(got.map((row) => row.values.energy)).toEqual([[39, 51], [29, 31], null]);
    expect([got[0]?.from, got[0]?.to, got[2]?.to]).toEqual([begin, minutes(5), minutes(15)]);
  });
  it('join silence to one', () => {
    const got = rows(history([[0, 50], [59, 40]]));
    expect(got.map(isEmpty)).toEqual([false, true, false]);
    expect([got[1]?.from, got[1]?.to]).toEqual([minutes(5), minutes(55)]);
  });
  it('are few for a month', () => {
    expect(rows(history([[0, 50]], 31 * 1440)).length).toBeLessThan(32);
  });
});
