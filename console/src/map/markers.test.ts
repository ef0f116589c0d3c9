import { describe, expect, it } from 'vitest';
import { Drawn, feature, type Difference } from './features';
import { around, picture, strength, type Marker } from './markers';

const car: Marker = {
  id: 42, status: 'in_use', contact: 'online', latitude: 48.1, longitude: 11.5, locatedAt: 1_000_000, energy: 61.5,
};
const other: Marker = { ...car, id: 43, status: 'available', contact: 'offline', latitude: null, longitude: null, locatedAt: null };

describe('markers', () => {
  it('fade with the age of their position', () => {
    const ages = [0, 11, 61, 24 * 60 + 1].map((minutes) => strength(0, minutes * 60_000));
    expect(ages).toEqual([...ages].sort((a, b) => b - a));
    expect(new Set(ages).size).toBe(4);
    expect(strength(null, 0)).toBe(ages.at(-1));
  });
  it('have a picture for each state', () => {
    expect(picture(car)).toBe('in_use:near:full');
    expect(picture({ ...other, energy: 3 })).toBe('available:lost:low');
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
    drawn.set(42, feature(car, 0), d);
    drawn.set(43, feature(other, 0), d);
    expect([d.add.length, drawn.size]).toEqual([1, 1]);
    drawn.set(42, feature(car, 0), (d = difference()));
    expect(d).toEqual(difference());
    drawn.set(42, feature({ ...car, latitude: 48.3 }, 0), d);
    expect(d.update).toEqual([expect.objectContaining({ id: 42, newGeometry: { type: 'Point', coordinates: [11.5, 48.3] } })]);
    drawn.set(42, feature({ ...car, latitude: 48.31 }, 0), (d = difference()), 0.02);
    expect(d).toEqual(difference());
    drawn.set(42, feature({ ...car, latitude: 48.33 }, 0), d, 0.02);
    expect(d.update).toHaveLength(1);
    drawn.set(42, null, (d = difference()));
    drawn.set(42, null, d);
    expect([d.remove, drawn.size]).toEqual([[42], 0]);
  });
});
