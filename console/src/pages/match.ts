import type { Command } from '../api/client';

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
    parameters.set(name, name === 'from' || name === 'to' ? new Date(value).toISOString() : value);
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
    (!f.from || Date.parse(c.requested_at) >= Date.parse(f.from)) &&
    (!f.to || Date.parse(c.requested_at) < Date.parse(f.to))
  );
}
