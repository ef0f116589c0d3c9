// Which vehicles a list shows, and in which order.
import { compareTexts } from '../format';
import { compact } from '../pages/match';
import { isLow, type VehicleRow } from './vehicleRow';

/** Which vehicles are shown. Empty values do not restrict. */
export interface Filter {
  q: string;
  status: string;
  contact: string;
  agency: string;
  /** "locked", "unlocked" */
  lock: string;
  /** "low", "charging" */
  energy: string;
}

/** Returns whether a vehicle passes a filter. */
export function passes(filter: Partial<Filter>): (row: VehicleRow) => boolean {
  const words = (filter.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const agency = Number(filter.agency);
  return (row) =>
    (!filter.status || row.status === filter.status) &&
    (!filter.contact || row.contact === filter.contact) &&
    (!filter.agency || row.agency === agency) &&
    (!filter.lock || row.locked === (filter.lock === 'locked')) &&
    (!filter.energy || (filter.energy === 'charging' ? row.charging === true : isLow(row))) &&
    words.every((word) => row.text.includes(word) || compact(row.plate).includes(compact(word)));
}

const statuses = ['available', 'booked', 'in_use', 'maintenance', 'inactive'];
const contacts = ['online', 'standby', 'offline', 'unknown'];

type Key = (row: VehicleRow, hours: ReadonlyMap<number, number>) => number | string | null;

/** What each column is sorted by; null comes last. */
const keys = {
  id: (row) => row.id,
  plate: (row) => row.plate,
  model: (row) => row.model,
  status: (row) => statuses.indexOf(row.status),
  contact: (row) => contacts.indexOf(row.contact),
  lock: (row) => (row.locked === null ? null : Number(row.locked)),
  energy: (row) => row.energy,
  position: (row) => (row.locatedAt === null ? null : -row.locatedAt), // the newest first
  rented: (row, hours) => hours.get(row.id) ?? null,
} satisfies Record<string, Key>;

export type Column = keyof typeof keys;
export const columns = Object.keys(keys) as Column[];

/** Sorts vehicles by "plate", or descending by "-plate"; else by id. hours are those for which they were rented, by their ids. */
export function sorted(rows: VehicleRow[], by: string, hours: ReadonlyMap<number, number> = new Map()): VehicleRow[] {
  const column = columns.find((name) => name === by.replace(/^-/, '')) ?? 'id';
  const [key, sign] = [keys[column] as Key, by.startsWith('-') ? -1 : 1];
  return rows.sort((a, b) => {
    const [x, y] = [key(a, hours), key(b, hours)];
    if (x === y) return a.id - b.id;
    if (x === null || y === null) return x === null ? 1 : -1;
    return sign * (typeof x === 'number' ? x - (y as number) : compareTexts(x, y as string)) || a.id - b.id;
  });
}
