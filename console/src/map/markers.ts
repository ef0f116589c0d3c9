// What a map shows of vehicles: of all of them, unlike the list, which holds those that were read.
import type { StatusChange } from '../api/events';

export interface Marker {
  id: number;
  agency: number;
  status: string;
  contact: string;
  latitude: number | null;
  longitude: number | null;
  /** When it was there, in milliseconds since 1970; null: not known. */
  locatedAt: number | null;
  /** When the vehicle was last in touch, in milliseconds since 1970, where that was read. */
  seenAt?: number | null;
  /** null: not known. */
  locked?: boolean | null;
  lockedAt?: number | null;
  /** In percent; null: not known. */
  energy: number | null;
  energyAt?: number | null;
}

/** The answer of GET /admin/fleet. */
export interface FleetRows {
  columns: string[];
  statuses: string[];
  connectivities: string[];
  vehicles: (number | null)[][];
}

/** Reads rows by the names of their columns: later versions of the service may add some. */
export function decode(rows: FleetRows): Marker[] {
  const place = (name: string) => rows.columns.indexOf(name);
  const [id, agency, status, contact] = [place('id'), place('agency_id'), place('status'), place('connectivity')];
  const time = (name: string) => {
    const column = place(name);
    return (row: (number | null)[]) => {
      const at = row[column] ?? null;
      return at === null ? null : at * 1000;
    };
  };
  const [locatedAt, lockedAt, energyAt, seenAt] = [time('located_at'), time('locked_at'), time('energy_at'), time('last_seen')];
  const [latitude, longitude, energy, locked] = [place('latitude'), place('longitude'), place('energy_percent'), place('locked')];
  return rows.vehicles.map((row) => {
    const isLocked = row[locked] ?? null;
    return {
      id: row[id] ?? 0,
      agency: row[agency] ?? 0,
      status: rows.statuses[row[status] ?? -1] ?? 'inactive',
      contact: rows.connectivities[row[contact] ?? -1] ?? 'unknown',
      latitude: row[latitude] ?? null,
      longitude: row[longitude] ?? null,
      locatedAt: locatedAt(row),
      locked: isLocked === null ? null : isLocked === 1,
      lockedAt: lockedAt(row),
      energy: row[energy] ?? null,
      energyAt: energyAt(row),
      seenAt: seenAt(row),
    };
  });
}

const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** A marker with what a report has changed. */
export function moved(marker: Marker, change: StatusChange): Marker {
  const { location = {}, telemetry = {}, connectivity = {} } = change;
  const next = { ...marker };
  const at = Date.parse(typeof location.timestamp === 'string' ? location.timestamp : change.at);
  if (('latitude' in location || 'longitude' in location || 'timestamp' in location) && at >= (marker.locatedAt ?? at)) {
    next.latitude = number(location.latitude) ?? marker.latitude;
    next.longitude = number(location.longitude) ?? marker.longitude;
    next.locatedAt = at;
  }
  const energy = number(telemetry.fuel_level_percent) ?? number(telemetry.battery_level_percent);
  const reportedAt = Date.parse(change.at);
  if (energy !== null && reportedAt >= (marker.energyAt ?? 0)) [next.energy, next.energyAt] = [energy, reportedAt];
  next.contact = typeof connectivity.status === 'string' ? connectivity.status : marker.contact;
  return next;
}

/** Which vehicles are shown. Empty values do not restrict. */
export interface Filter {
  agency: string;
  status: string;
  contact: string;
  low: boolean;
  /** Vehicles that were found by words; null: all. */
  ids: Set<number> | null;
}

export function matches(marker: Marker, filter: Filter, lowBelow: number): boolean {
  return (
    (!filter.agency || String(marker.agency) === filter.agency) &&
    (!filter.status || marker.status === filter.status) &&
    (!filter.contact || marker.contact === filter.contact) &&
    (!filter.low || (marker.energy !== null && marker.energy < lowBelow)) &&
    (filter.ids === null || filter.ids.has(marker.id))
  );
}

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
export function picture(marker: Marker, lowBelow: number): string {
  const lost = marker.contact === 'offline' || marker.contact === 'unknown';
  const low = marker.energy !== null && marker.energy < lowBelow;
  return `${marker.status}:${lost ? 'lost' : 'near'}:${low ? 'low' : 'full'}`;
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
