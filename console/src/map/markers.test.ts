import { describe, expect, it } from 'vitest';
import { Drawn, feature, type Difference } from './features';
import { around, decode, matches, moved, picture, strength, type Filter } from './markers';

const columns = [
  'id',
  'agency_id',
  'status',
  'connectivity',
  'latitude',
  'longitude',
  'located_at',
  'locked',
  'energy_percent',
  'last_seen',
  'locked_at',
  'energy_at',
];
const rows = {
  columns: ['later', ...columns],
  statuses: ['available', 'in_use'],
  connectivities: ['online', 'offline'],
  vehicles: [
    [9, 42, 1, 1, 0, 48.1, 11.5, 1_000, 0, 61.5, 1_001, 900, 1_000],
    [9, 43, 2, 0, 1, null, null, null, null, null, null, null, null],
  ],
};
const [car, other] = decode(rows) as [ReturnType<typeof decode>[0], ReturnType<typeof decode>[0]];
const all: Filter = { agency: '', status: '', contact: '', low: false, ids: null };

describe('markers', () => {
  it('are read by the names of columns', () => {
    expect(car).toEqual({
      id: 42,
      agency: 1,
      status: 'in_use',
      contact: 'online',
      latitude: 48.1,
      longitude: 11.5,
      locatedAt: 1_000_000,
      locked: false,
      lockedAt: 900_000,
      energy: 61.5,
      energyAt: 1_000_000,
      seenAt: 1_001_000,
    });
    expect(other).toMatchObject({ latitude: null, locatedAt: null, energy: null, contact: 'offline' });
  });
  it('move with reports, and keep what a report does not have', () => {
    const at = '1970-01-01T00:20:00.000Z';
    expect(moved(car, { vehicle_id: 42, at, location: { latitude: 48.2 } })).toEqual({ ...car, latitude: 48.2, locatedAt: 1_200_000 });
    expect(moved(car, { vehicle_id: 42, at, telemetry: { battery_level_percent: 5 } })).toEqual({ ...car, energy: 5, energyAt: 1_200_000 });
    expect(moved(car, { vehicle_id: 42, at: '1970-01-01T00:16:00.000Z', telemetry: { battery_level_percent: 5 } })).toEqual(car);
    expect(moved(car, { vehicle_id: 42, at, connectivity: { status: 'standby' } })).toEqual({ ...car, contact: 'standby' });
    const late = { vehicle_id: 42, at, location: { latitude: 50, timestamp: '1970-01-01T00:00:01.000Z' } };
    expect(moved(car, late)).toEqual(car);
  });
  it.each([
    [{}, true],
    [{ agency: '1' }, true],
    [{ agency: '2' }, false],
    [{ status: 'available' }, false],
    [{ contact: 'offline' }, false],
    [{ low: true }, false],
    [{ ids: new Set([42]) }, true],
    [{ ids: new Set<number>() }, false],
  ])('are filtered by %j: %s', (filter, shown) => expect(matches(car, { ...all, ...filter }, 20)).toBe(shown));
  it('have low energy only where it is known', () => {
    expect(matches({ ...car, energy: 19 }, { ...all, low: true }, 20)).toBe(true);
    expect(matches(other, { ...all, low: true }, 20)).toBe(false);
  });
  it('fade with the age of their position', () => {
    const ages = [0, 11, 61, 24 * 60 + 1].map((minutes) => strength(0, minutes * 60_000));
    expect(ages).toEqual([...ages].sort((a, b) => b - a));
    expect(new Set(ages).size).toBe(4);
    expect(strength(null, 0)).toBe(ages.at(-1));
  });
  it('have a picture for each state', () => {
    expect(picture(car, 20)).toBe('in_use:near:full');
    expect(picture({ ...other, energy: 3 }, 20)).toBe('available:lost:low');
  });
  it('have a box around them', () => {
    expect(around([car, other, { ...car, latitude: 47, longitude: 12 }])).toEqual([11.5, 47, 12, 48.1]);
    expect(around([other])).toBeNull();
  });
  it('have the smallest box around them, across the 180th meridian', () => {
    const at = (...longitudes: number[]) => longitudes.map((longitude) => ({ latitude: 1, longitude }));
    expect(around(at(179, -178, 177))).toEqual([177, 1, 182, 1]);
    expect(around(at(179.5, 180.5))).toEqual([179.5, 1, 180.5, 1]);
    expect(around(at(-170, 10, 170))).toEqual([10, 1, 190, 1]);
    expect(around(at(-90, 90))).toEqual([-90, 1, 90, 1]);
    expect(around(at(-180))).toEqual([-180, 1, -180, 1]);
  });
});

describe('drawn features', () => {
  const difference = (): Difference => ({ add: [], remove: [], update: [] });
  it('change where a marker has', () => {
    const drawn = new Drawn();
    let d = difference();
    drawn.set(42, feature(car, 0, 20), d);
    drawn.set(43, feature(other, 0, 20), d);
    expect([d.add.length, drawn.size]).toEqual([1, 1]);
    drawn.set(42, feature(car, 0, 20), (d = difference()));
    expect(d).toEqual(difference());
    drawn.set(42, feature({ ...car, latitude: 48.3 }, 0, 20), d);
    expect(d.update).toEqual([expect.objectContaining({ id: 42, newGeometry: { type: 'Point', coordinates: [11.5, 48.3] } })]);
    drawn.set(42, null, (d = difference()));
    drawn.set(42, null, d);
    expect([d.remove, drawn.size]).toEqual([[42], 0]);
  });
});
