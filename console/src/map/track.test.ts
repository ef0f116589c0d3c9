import { describe, expect, it } from 'vitest';
import type { BookingTrack, VehicleHistory } from '../api/client';
import { legs, metres, nearest, stretches, trackOfBooking, trackOfHistory, type TrackPoint } from './track';

const begin = Date.parse('2026-01-02T00:00:00.000Z');
/** A point at a minute, some metres north. */
const point = (minute: number, north: number, speed: number | null = null): TrackPoint => ({
  at: begin + minute * 60_000, latitude: 48 + north / 111_195, longitude: 11.5, speed,
});
const track = (...points: TrackPoint[]) => ({ points, bucketSeconds: 15 });

describe('a track', () => {
  it('of a history leaves out buckets without a position', () => {
    const history = {
      bucket_seconds: 60,
      times: ['', '', ''],
      speed: { min: [], avg: [30, 40, null], max: [] },
      position: {
        latitude: [48.1, null, 48.2],
        longitude: [11.5, null, 11.6],
        at: ['2026-01-02T00:00:00.000Z', null, '2026-01-02T00:01:00.000Z'],
      },
    } as unknown as VehicleHistory;
    expect(trackOfHistory(history)).toEqual({
      bucketSeconds: 60,
      points: [
        { at: begin, latitude: 48.1, longitude: 11.5, speed: 30 },
        { at: begin + 60_000, latitude: 48.2, longitude: 11.6, speed: null },
      ],
    });
    expect(trackOfHistory({ ...history, position: null }).points).toEqual([]);
  });
  it('of a booking is a line, a point or nothing', () => {
    const feature = (geometry: unknown) =>
      ({ geometry, properties: { times: ['2026-01-02T00:00:00.000Z'], speeds: [5], bucket_seconds: 15 } }) as unknown as BookingTrack;
    const want = [{ at: begin, latitude: 48.1, longitude: 11.5, speed: 5 }];
    expect(trackOfBooking(feature({ type: 'LineString', coordinates: [[11.5, 48.1]] })).points).toEqual(want);
    expect(trackOfBooking(feature({ type: 'Point', coordinates: [11.5, 48.1] })).points).toEqual(want);
    expect(trackOfBooking(feature(null)).points).toEqual([]);
  });
  it('goes on across the 180th meridian', () => {
    const times = ['00', '01', '02', '03', '04', '05'].map((second) => `2026-01-02T00:00:${second}.000Z`);
    const feature = {
      geometry: { type: 'MultiLineString', coordinates: [[[179.99, 1], [180, 1]], [[-180, 1], [-179.99, 1], [-180, 1]], [[180, 1]]] },
      properties: { times, speeds: [5, null, null, 5, null, null], bucket_seconds: 15 },
    } as unknown as BookingTrack;
    const { points } = trackOfBooking(feature);
    expect(points.map((p) => p.longitude)).toEqual([179.99, 180, 180, 180.01, 180, 180].map((l) => expect.closeTo(l, 9)));
    expect(metres(points[0]!, points[3]!)).toBeLessThan(2300);
    const position = { latitude: [1, 1, 1], longitude: [-179.99, 179.99, -179.99], at: times.slice(0, 3) };
    const history = { bucket_seconds: 15, times: times.slice(0, 3), speed: null, position } as unknown as VehicleHistory;
    expect(trackOfHistory(history).points.map((p) => p.longitude)).toEqual([-179.99, -180.01, -179.99].map((l) => expect.closeTo(l, 9)));
  });
  it('breaks where nothing was heard', () => {
    const standing = [point(0, 0), point(8, 0), point(16, 10)]; // as seldom as an online unit may report
    expect(stretches(track(...standing)).map((s) => s.length)).toEqual([3]);
    expect(stretches(track(...standing, point(40, 0))).map((s) => s.length)).toEqual([3, 1]);
    const tunnel = [point(0, 0), point(1, 500), point(6, 3000), point(7, 3500)];
    expect(stretches(track(...tunnel)).map((s) => s.length)).toEqual([2, 2]);
    expect(stretches({ points: tunnel, bucketSeconds: 300 }).map((s) => s.length)).toEqual([4]); // a coarser one does not show it
    expect(stretches(track())).toEqual([]);
  });
  it('finds the point of a time', () => {
    const points = [point(0, 0), point(10, 0)];
    expect([nearest(points, begin), nearest(points, begin + 6 * 60_000), nearest(points, begin + 1e9), nearest([], 0)]).toEqual([
      0, 1, 1, -1,
    ]);
  });
  it('knows distances', () => {
    expect(metres({ latitude: 48.1402, longitude: 11.5586 }, { latitude: 48.1277, longitude: 11.6034 })).toBeGreaterThan(3500);
    expect(metres({ latitude: 48.1402, longitude: 11.5586 }, { latitude: 48.1277, longitude: 11.6034 })).toBeLessThan(3700);
  });
});

describe('legs', () => {
  it('drive, stand and are not known', () => {
    const got = legs(
      track(
        point(0, 0, 0),
        point(5, 3, 0),
        point(6, 600, 36),
        point(7, 1400, 50),
        point(7.5, 1400, 0),
        point(8.5, 2000, 40),
        point(20, 2000, 0),
        point(25, 2000, 0),
      ),
    );
    expect(
      got.map((leg) => [leg.kind, (leg.from.at - begin) / 60_000, (leg.to.at - begin) / 60_000, Math.round(leg.metres / 100), leg.speed]),
    ).toEqual([
      ['stood', 0, 5, 0, null],
      ['drove', 5, 8.5, 20, 50], // with the traffic light
      ['gap', 8.5, 20, 0, null],
      ['stood', 20, 25, 0, null],
    ]);
  });
  it('of one point, and of none', () => {
    expect(legs(track(point(0, 0)))).toMatchObject([{ kind: 'stood' }]);
    expect(legs(track())).toEqual([]);
  });
});
