import type { Command } from '../api/client';
import { serverTime } from '../api/servertime';
import type { VehicleRow } from '../state/vehicleRow';

/** The filters of a list, as they are in the address of the page. */
export interface Filters {
  state: string;
  outcome: string;
  vehicle_id: string;
  actor: string;
  from: string;
  to: string;
}

/** The states of bookings that are not cancelled, as a filter. */
export const notCancelled = 'upcoming,active,completed';

export const filterNames = ['state', 'outcome', 'vehicle_id', 'actor', 'from', 'to'] as const;

/** The instant of a filter: a time, or one before now, such as -1h or -7d. NaN: it is neither. */
export function timeOf(value: string, now = serverTime.now()): number {
  const before = /^-(\d{1,4})([hd])$/.exec(value);
  return before ? now - Number(before[1]) * (before[2] === 'h' ? 1 : 24) * 3_600_000 : Date.parse(value);
}

/** The filters that are set. */
export const filtersOf = (filters: Partial<Filters>) => new URLSearchParams(Object.entries(filters).filter(([, value]) => value));

/** Filters as parameters of the API, now. Times are those of the browser's zone. */
export function parametersOf(filters: URLSearchParams): URLSearchParams {
  const parameters = new URLSearchParams(filters);
  for (const name of ['from', 'to']) {
    const at = timeOf(parameters.get(name) ?? '');
    if (Number.isNaN(at)) parameters.delete(name); // or an address was mistyped
    else parameters.set(name, new Date(at).toISOString());
  }
  return parameters;
}

/** Whether a command passes the filters, as the API decides it. */
export function passes(c: Command, f: Filters): boolean {
  return (
    (!f.state || f.state.split(',').includes(c.state)) &&
    (!f.outcome || c.outcome === f.outcome) &&
    (!f.vehicle_id || String(c.vehicle_id) === f.vehicle_id) &&
    (!f.actor || c.requested_by === f.actor) &&
    !(Date.parse(c.requested_at) < timeOf(f.from)) &&
    !(Date.parse(c.requested_at) >= timeOf(f.to))
  );
}

/** A plate as people also write it: mim2101. */
export const compact = (text: string) => text.replaceAll(/[\s-]/g, '').toLowerCase();

type Named = Pick<VehicleRow, 'id' | 'plate'>;

/** What vehicles are called, by their ids: the plate, with the id where others have the same plate. */
export function namesOf(vehicles: Iterable<Named>): Map<number, string> {
  const all = [...vehicles];
  const count = new Map<string, number>();
  for (const v of all) count.set(compact(v.plate), (count.get(compact(v.plate)) ?? 0) + 1);
  return new Map(all.map((v) => [v.id, count.get(compact(v.plate)) === 1 ? v.plate : `${v.plate} (#${v.id})`]));
}

/** The ids of the vehicles that a person may mean by a name (see namesOf), a plate, an id, or a part of a plate. */
export function vehiclesOf(text: string, vehicles: Iterable<Named>): string[] {
  const named = text.match(/\(#(\d{1,15})\)\s*$/)?.[1];
  if (named) return [named];
  const word = compact(text);
  const all = [...vehicles];
  const idsOf = (fits: (plate: string, id: string) => boolean) =>
    all.filter((v) => fits(compact(v.plate), String(v.id))).map((v) => String(v.id));
  const best = [idsOf((plate) => plate === word), idsOf((_, id) => id === word), idsOf((plate) => plate.includes(word))];
  const found = best.find((ids) => ids.length > 0) ?? [];
  return found.length === 0 && /^\d{1,15}$/.test(word) ? [word] : found;
}
