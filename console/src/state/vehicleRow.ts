// A vehicle as lists and the map show it: each value with its own time, in milliseconds since 1970.
import type { StatusMeta, VehicleStatus, VehicleSummary } from '../api/client';
import type { StatusChange } from '../api/events';
import { lowEnergyBelow } from '../format';

export interface VehicleRow {
  id: number;
  plate: string;
  /** The brand and the model. */
  model: string;
  /** The serial of its unit; null: it has none. */
  unit: string | null;
  agency: number;
  status: string;
  powertrain: string;
  contact: string;
  /** When its unit was last in touch; null: never. */
  seenAt: number | null;
  /** null: not known. Of a value that is not known, the time says since when. */
  locked: boolean | null;
  lockedAt: number | null;
  /** In percent, of the battery of an electric vehicle, else of the tank. */
  energy: number | null;
  energyAt: number | null;
  charging: boolean | null;
  chargingAt: number | null;
  latitude: number | null;
  longitude: number | null;
  locatedAt: number | null;
  /** undefined: not read yet. It is read for what is visible. */
  address?: string | null | undefined;
  /** Whether it drives; undefined as above. */
  moving?: boolean | undefined;
  /** In km/h, and when it was reported; undefined as above. */
  speed?: { kmh: number | null; at: number } | undefined;
  /** All that words are searched in, in lower case. */
  text: string;
}

type Cell = number | string | null;

/** The answer of GET /admin/fleet. */
export interface FleetRows {
  columns: string[];
  statuses: string[];
  connectivities: string[];
  powertrains?: string[];
  models?: string[];
  vehicles: Cell[][];
}

const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);
const time = (text: unknown): number | null => (typeof text === 'string' ? Date.parse(text) : null);
const textOf = ({ id, plate, model, unit }: Omit<VehicleRow, 'text'>) => `${id} ${plate} ${model} ${unit ?? ''}`.toLowerCase();

/** Whether clients can get a vehicle. */
export const isInService = ({ status }: Pick<VehicleRow, 'status'>) => status !== 'maintenance' && status !== 'inactive';

/** Reads rows by the names of their columns: later versions of the service may add some, and one before this has fewer. */
export function decode(rows: FleetRows): VehicleRow[] {
  const places = new Map(rows.columns.map((name, place) => [name, place]));
  const column = (name: string) => {
    const place = places.get(name) ?? -1;
    return (row: Cell[]): Cell => row[place] ?? null;
  };
  const of = (name: string) => {
    const cell = column(name);
    return (row: Cell[]) => number(cell(row));
  };
  const timeOf = (name: string) => {
    const seconds = of(name);
    return (row: Cell[]) => {
      const at = seconds(row);
      return at === null ? null : at * 1000;
    };
  };
  const [id, agency, status, contact, model, powertrain] = [
    of('id'), of('agency_id'), of('status'), of('connectivity'), of('model'), of('powertrain'),
  ];
  const truth = (name: string) => {
    const cell = of(name);
    return (row: Cell[]) => {
      const is = cell(row);
      return is === null ? null : is === 1;
    };
  };
  const [latitude, longitude, energy, locked, charging] = [
    of('latitude'), of('longitude'), of('energy_percent'), truth('locked'), truth('charging'),
  ];
  const [locatedAt, lockedAt, energyAt, chargingAt, seenAt] = [
    timeOf('located_at'), timeOf('locked_at'), timeOf('energy_at'), timeOf('charging_at'), timeOf('last_seen'),
  ];
  const [plate, unit] = [column('plate_number'), column('unit')];
  return rows.vehicles.map((row) => {
    const serial = unit(row);
    const decoded = {
      id: id(row) ?? 0,
      plate: String(plate(row) ?? `#${id(row)}`),
      model: rows.models?.[model(row) ?? -1] ?? '',
      unit: serial === null ? null : String(serial),
      agency: agency(row) ?? 0,
      status: rows.statuses[status(row) ?? -1] ?? 'inactive',
      powertrain: rows.powertrains?.[powertrain(row) ?? -1] ?? '',
      contact: rows.connectivities[contact(row) ?? -1] ?? 'unknown',
      seenAt: seenAt(row),
      locked: locked(row),
      lockedAt: lockedAt(row),
      energy: energy(row),
      energyAt: energyAt(row),
      charging: charging(row),
      chargingAt: chargingAt(row),
      latitude: latitude(row),
      longitude: longitude(row),
      locatedAt: locatedAt(row),
      text: '',
    };
    decoded.text = textOf(decoded);
    return decoded;
  });
}

/** What is newly known of a vehicle; what is undefined is not. */
export interface Reading {
  lock?: Pick<VehicleRow, 'locked' | 'lockedAt'> | undefined;
  energy?: Pick<VehicleRow, 'energy' | 'energyAt'> | undefined;
  charging?: Pick<VehicleRow, 'charging' | 'chargingAt'> | undefined;
  /** address undefined: it is not known whether that of before is still right. */
  place?: Pick<VehicleRow, 'latitude' | 'longitude' | 'locatedAt' | 'address'> | undefined;
  contact?: string | undefined;
  seenAt?: number | null | undefined;
  moving?: boolean | undefined;
  speed?: VehicleRow['speed'];
  status?: string | undefined;
}

const nearby = 0.0001; // degrees, about 10 m: the address of one place is that of the other

const isNear = (a: number | null, b: number | null) => a !== null && b !== null && Math.abs(a - b) < nearby;

/** Returns a vehicle with a reading. Of each value the one with the later time counts: readings overtake each other. */
export function updated(row: VehicleRow, { lock, energy, charging, place, contact, seenAt, moving, speed, status }: Reading): VehicleRow {
  const next = { ...row };
  if (lock && (lock.lockedAt ?? 0) >= (row.lockedAt ?? 0)) Object.assign(next, lock);
  if (energy && (energy.energyAt ?? 0) >= (row.energyAt ?? 0)) Object.assign(next, energy);
  if (charging && (charging.chargingAt ?? 0) >= (row.chargingAt ?? 0)) Object.assign(next, charging);
  if (place && (place.locatedAt ?? 0) >= (row.locatedAt ?? 0)) {
    const same = isNear(place.latitude, row.latitude) && isNear(place.longitude, row.longitude);
    Object.assign(next, place, { address: place.address === undefined && same ? row.address : place.address });
  }
  if (contact !== undefined) next.contact = contact;
  if (seenAt && seenAt > (row.seenAt ?? 0)) next.seenAt = seenAt;
  if (moving !== undefined) next.moving = moving;
  if (speed && speed.at >= (row.speed?.at ?? 0)) next.speed = speed;
  if (status !== undefined) next.status = status;
  return next;
}

/** Returns a vehicle as it was read, with what is known from before and newer. */
export function keepNewer(read: VehicleRow, known: VehicleRow | undefined): VehicleRow {
  if (!known) return read;
  // Times of a row are in seconds. Of one second, what an event has brought is newer.
  const { latitude, longitude, locatedAt, address, seenAt, moving, speed } = known;
  const place = { latitude, longitude, locatedAt, address };
  const { locked, lockedAt, energy, energyAt, charging, chargingAt } = known;
  const values = { lock: { locked, lockedAt }, energy: { energy, energyAt }, charging: { charging, chargingAt } };
  const row = updated(read, { ...values, place, seenAt, moving, speed });
  // Where there was no address, the service may have found one since.
  if (row.address === null) row.address = undefined;
  return row.address === undefined && isNear(row.latitude, latitude) && isNear(row.longitude, longitude)
    ? { ...row, address: address ?? undefined }
    : row;
}

type Place = Pick<VehicleRow, 'latitude' | 'longitude' | 'locatedAt'>;

/** How fast a vehicle went from one place to another, in km/h; null: not known. */
function speedBetween(a: Place, b: Place): number | null {
  if (a.latitude === null || a.longitude === null || b.latitude === null || b.longitude === null) return null;
  const east = (b.longitude - a.longitude) * Math.cos((a.latitude * Math.PI) / 180);
  const km = 111 * Math.hypot(b.latitude - a.latitude, east);
  const hours = ((b.locatedAt ?? 0) - (a.locatedAt ?? 0)) / 3_600_000;
  return hours > 0 ? km / hours : null;
}

/** Returns a vehicle with what an event says of it. */
export function withReport(row: VehicleRow, change: StatusChange): VehicleRow {
  const { location = {}, telemetry = {}, connectivity = {} } = change;
  const at = Date.parse(change.at);
  const level = row.powertrain === 'electric' ? 'battery_level_percent' : 'fuel_level_percent';
  const isPlace = 'latitude' in location || 'longitude' in location || 'timestamp' in location;
  const place = {
    latitude: 'latitude' in location ? number(location.latitude) : row.latitude,
    longitude: 'longitude' in location ? number(location.longitude) : row.longitude,
    locatedAt: time(location.timestamp) ?? at,
    address: undefined,
  };
  // A speed that stays the same is in no event.
  const kmh = 'speed_kmh' in telemetry ? number(telemetry.speed_kmh) : (row.speed?.kmh ?? speedBetween(row, place));
  const drives = telemetry.ignition === 'on' || (number(telemetry.speed_kmh) ?? 0) > 0;
  return updated(row, {
    lock: 'is_locked' in telemetry
      ? { locked: typeof telemetry.is_locked === 'boolean' ? telemetry.is_locked : null, lockedAt: at }
      : undefined,
    energy: level in telemetry ? { energy: number(telemetry[level]), energyAt: at } : undefined,
    charging: 'charging_status' in telemetry
      ? { charging: telemetry.charging_status === null ? null : telemetry.charging_status === 'charging', chargingAt: at }
      : undefined,
    place: isPlace ? place : undefined,
    contact: typeof connectivity.status === 'string' ? connectivity.status : undefined,
    seenAt: at, // a report is a sign of life
    moving: drives || ('ignition' in telemetry ? false : undefined),
    speed: 'speed_kmh' in telemetry || (isPlace && kmh !== null) ? { kmh, at } : undefined,
  });
}

/** Returns a vehicle with what was read of it in particular. */
export function withSummary(row: VehicleRow, s: VehicleSummary): VehicleRow {
  const named = { ...row, plate: s.plate_number, model: `${s.brand} ${s.model}`.trim(), unit: s.unit, agency: s.agency_id };
  named.powertrain = s.powertrain;
  named.text = textOf(named);
  const of = s.reported_at;
  const times = { lockedAt: time(of?.is_locked), energyAt: time(energyTime(s.powertrain, of)), speedAt: time(of?.speed_kmh) };
  return withStatus(named, s, times);
}

type Levels<Value> = { battery_level_percent?: Value; fuel_level_percent?: Value } | undefined;
const energyTime = (powertrain: string, times: Levels<string | null>) =>
  powertrain === 'electric' ? times?.battery_level_percent : times?.fuel_level_percent;

/** When the lock, the energy and the speed of a status were reported. */
export function timesOf({ older, sections }: Pick<StatusMeta, 'sections' | 'older'>, powertrain: string) {
  const at = (name: string) => time(older[`telemetry.${name}`] ?? sections.telemetry);
  const energy = powertrain === 'electric' ? 'battery_level_percent' : 'fuel_level_percent';
  return { lockedAt: at('is_locked'), energyAt: at(energy), speedAt: at('speed_kmh') };
}

type Status = Pick<VehicleStatus, 'status' | 'location'> & {
  connectivity: Pick<VehicleStatus['connectivity'], 'status' | 'last_seen'>;
  telemetry: Pick<VehicleStatus['telemetry'], 'ignition' | 'speed_kmh' | 'is_locked' | 'battery_level_percent' | 'fuel_level_percent'>;
};

/** Returns a vehicle with its status, whose lock, energy and speed have times. */
export function withStatus(row: VehicleRow, s: Status, times: ReturnType<typeof timesOf>): VehicleRow {
  const { location, telemetry, connectivity } = s;
  const seenAt = time(connectivity.last_seen);
  const energy = row.powertrain === 'electric' ? telemetry.battery_level_percent : telemetry.fuel_level_percent;
  return updated(row, {
    lock: { locked: telemetry.is_locked, lockedAt: times.lockedAt },
    energy: { energy, energyAt: times.energyAt },
    place: {
      latitude: location.latitude,
      longitude: location.longitude,
      locatedAt: time(location.timestamp),
      address: location.address,
    },
    contact: (seenAt ?? 0) >= (row.seenAt ?? 0) ? connectivity.status : undefined,
    seenAt,
    moving: telemetry.ignition === 'on' || (telemetry.speed_kmh ?? 0) > 0,
    speed: times.speedAt ? { kmh: telemetry.speed_kmh, at: times.speedAt } : undefined,
    status: s.status,
  });
}

export const isLow = ({ energy }: Pick<VehicleRow, 'energy'>) => energy !== null && energy < lowEnergyBelow;
