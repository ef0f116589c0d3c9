// Where a vehicle was: points of a history or of a booking, and what they tell. Times are in
// milliseconds since 1970.
import type { BookingTrack, VehicleHistory } from '../api/client';
import { silence } from '../charts/series';

export interface TrackPoint {
  at: number;
  latitude: number;
  longitude: number;
  /** In km/h; null: not reported. */
  speed: number | null;
}

export interface Track {
  points: TrackPoint[];
  /** Two points that are further apart do not belong together. */
  bucketSeconds: number;
}

// A unit reports each minute while it drives: without a report for longer, its way is not known.
const unheardAfter = 3 * 60_000;
const farAway = 300; // metres
const stands = 50; // metres: less is what a position varies by
const shortStop = 3 * 60_000; // a traffic light

export function trackOfHistory(history: VehicleHistory): Track {
  const points = (history.position?.at ?? []).flatMap((at, i): TrackPoint[] => {
    const [latitude, longitude] = [history.position?.latitude[i] ?? null, history.position?.longitude[i] ?? null];
    if (at === null || latitude === null || longitude === null) return [];
    return [{ at: Date.parse(at), latitude, longitude, speed: history.speed?.avg[i] ?? null }];
  });
  return { points: unwrap(points), bucketSeconds: history.bucket_seconds };
}

export function trackOfBooking({ geometry, properties }: BookingTrack): Track {
  const given = geometry?.coordinates ?? [];
  const coordinates = (geometry?.type === 'Point' ? [given] : geometry?.type === 'MultiLineString' ? given.flat(1) : given) as [
    number,
    number,
  ][];
  const points = coordinates.map(([longitude, latitude], i) => ({
    at: Date.parse(properties.times[i] ?? ''), latitude, longitude, speed: properties.speeds[i] ?? null,
  }));
  return { points: unwrap(points), bucketSeconds: properties.bucket_seconds ?? 0 };
}

/** The points with longitudes that go on beyond 180 degrees: else a way across the 180th meridian is a line round the world. */
function unwrap(points: TrackPoint[]): TrackPoint[] {
  let turns = 0;
  return points.map((point, i) => {
    const before = points[i - 1];
    if (before) turns += Math.round((before.longitude - point.longitude) / 360);
    return { ...point, longitude: point.longitude + 360 * turns };
  });
}

/** The distance of two places, in metres. */
export function metres(a: { latitude: number; longitude: number }, b: { latitude: number; longitude: number }): number {
  const radians = Math.PI / 180;
  const x = (b.longitude - a.longitude) * radians * Math.cos(((a.latitude + b.latitude) / 2) * radians);
  return Math.hypot(x, (b.latitude - a.latitude) * radians) * 6_371_000;
}

/** Whether it is not known where the vehicle was between two points. */
export function isGap(a: TrackPoint, b: TrackPoint, bucketSeconds: number): boolean {
  const apart = b.at - a.at;
  return apart > silence(bucketSeconds) || (apart > unheardAfter + bucketSeconds * 1000 && metres(a, b) > farAway);
}

/** The points, divided where there are gaps. */
export function stretches({ points, bucketSeconds }: Track): TrackPoint[][] {
  const result: TrackPoint[][] = [];
  points.forEach((point, i) => {
    const before = points[i - 1];
    if (!before || isGap(before, point, bucketSeconds)) result.push([]);
    result.at(-1)?.push(point);
  });
  return result;
}

/** The place of the point that is nearest to a time; -1: there is none. */
export function nearest(points: TrackPoint[], at: number): number {
  let found = -1;
  points.forEach((point, i) => {
    if (found < 0 || Math.abs(point.at - at) <= Math.abs(points[found]!.at - at)) found = i;
  });
  return found;
}

export interface Leg {
  kind: 'drove' | 'stood' | 'gap';
  from: TrackPoint;
  to: TrackPoint;
  metres: number;
  /** The greatest speed in km/h; null: not reported. */
  speed: number | null;
}

/** What the vehicle did, one after the other: drove, stood, was not heard. */
export function legs({ points, bucketSeconds }: Track): Leg[] {
  const result: Leg[] = [];
  const first = points[0];
  if (first && points.length === 1) return [{ kind: 'stood', from: first, to: first, metres: 0, speed: first.speed }];
  points.slice(1).forEach((to, i) => {
    const from = points[i]!;
    const way = metres(from, to);
    const kind = isGap(from, to, bucketSeconds) ? 'gap' : way > stands ? 'drove' : 'stood';
    add(result, { kind, from, to, metres: way, speed: kind === 'drove' ? greatest(from.speed, to.speed) : null });
  });
  // A short stop belongs to the drive around it.
  return result.reduce<Leg[]>((joined, leg, i) => {
    const short = leg.kind === 'stood' && leg.to.at - leg.from.at < shortStop;
    const between = result[i - 1]?.kind === 'drove' && result[i + 1]?.kind === 'drove';
    add(joined, short && between ? { ...leg, kind: 'drove' } : leg);
    return joined;
  }, []);
}

function add(legs: Leg[], leg: Leg) {
  const last = legs.at(-1);
  if (last?.kind !== leg.kind) {
    legs.push({ ...leg });
    return;
  }
  last.to = leg.to;
  last.metres += leg.metres;
  last.speed = greatest(last.speed, leg.speed);
}

const greatest = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : Math.max(a, b));
