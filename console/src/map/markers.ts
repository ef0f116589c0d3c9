// What a map shows of vehicles.
import { isLow, type VehicleRow } from '../state/vehicleRow';

export type Marker = Pick<VehicleRow, 'id' | 'status' | 'contact' | 'latitude' | 'longitude' | 'locatedAt' | 'energy'>;

const minute = 60_000;

/** How strongly a position is drawn: the older, the fainter. */
export function strength(locatedAt: number | null, now: number): number {
  const age = locatedAt === null ? Infinity : now - locatedAt;
  if (age < 10 * minute) return 1;
  if (age < 60 * minute) return 0.8;
  if (age < 24 * 60 * minute) return 0.6;
  return 0.4;
}

/** The name of a marker's picture: its status, whether its unit is out of touch, and low energy. */
export function picture(marker: Marker): string {
  const lost = marker.contact === 'offline' || marker.contact === 'unknown';
  return `${marker.status}:${lost ? 'lost' : 'near'}:${isLow(marker) ? 'low' : 'full'}`;
}

export type Box = [west: number, south: number, east: number, north: number];

/** The smallest box around positions, whose east is beyond 180 degrees where it crosses that meridian; null: there are none. */
export function around(places: Iterable<Pick<Marker, 'latitude' | 'longitude'>>): Box | null {
  const longitudes: number[] = [];
  let [south, north] = [Infinity, -Infinity];
  for (const { latitude, longitude } of places) {
    if (latitude === null || longitude === null) continue;
    longitudes.push(Math.abs(longitude) <= 180 ? longitude : longitude - 360 * Math.round(longitude / 360));
    [south, north] = [Math.min(south, latitude), Math.max(north, latitude)];
  }
  if (longitudes.length === 0) return null;
  longitudes.sort((a, b) => a - b);
  // The box leaves out the widest gap, first that across the meridian.
  let [west, east] = [longitudes[0]!, longitudes.at(-1)!];
  let widest = west + 360 - east;
  for (let i = 1; i < longitudes.length; i++) {
    const [before, after] = [longitudes[i - 1]!, longitudes[i]!];
    if (after - before <= widest) continue;
    widest = after - before;
    [west, east] = [after, before + 360];
  }
  return [west, south, east, north];
}
