import type { Command, VehicleSummary } from '../api/client';

/** The filters of a list, as they are in the address of the page. */
export interface Filters {
  state: string;
  outcome: string;
  vehicle_id: string;
  actor: string;
  from: string;
  to: string;
}

export const filterNames = ['state', 'outcome', 'vehicle_id', 'actor', 'from', 'to'] as const;

/** The filters that are set, as parameters of the API. Times are those of the browser's zone. */
export function parametersOf(filters: Partial<Filters>): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) {
    if (!value) continue;
    if (name === 'from' || name === 'to') {
      const at = Date.parse(value);
      if (!Number.isNaN(at)) parameters.set(name, new Date(at).toISOString()); // else an address was mistyped
    } else parameters.set(name, value);
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
    !(Date.parse(c.requested_at) < Date.parse(f.from)) &&
    !(Date.parse(c.requested_at) >= Date.parse(f.to))
  );
}

const compact = (text: string) => text.replaceAll(/[\s-]/g, '').toLowerCase();

/** The id of the vehicle that a person means by a plate or an id; empty: none is meant; null: it is neither. */
export function vehicleOf(text: string, vehicles: Iterable<Pick<VehicleSummary, 'id' | 'plate_number'>>): string | null {
  const word = compact(text);
  if (!word) return '';
  for (const v of vehicles) if (compact(v.plate_number) === word) return String(v.id);
  return /^\d{1,15}$/.test(word) ? word : null;
}
