// How far what a vehicle has reported can still be believed.
import type { VehicleStatus } from './api/client';

export type Freshness = 'fresh' | 'aging' | 'old';
const minute = 60_000;

/** How far a value can be believed to hold still: what moves changes sooner. */
export function freshness(at: string | number | null, now: number, moving: boolean): Freshness {
  if (at === null) return 'old';
  const age = now - (typeof at === 'number' ? at : Date.parse(at));
  const [aging, old] = moving ? [2 * minute, 10 * minute] : [10 * minute, 60 * minute];
  return age < aging ? 'fresh' : age < old ? 'aging' : 'old';
}

export const isMoving = ({ telemetry }: { telemetry: Pick<VehicleStatus['telemetry'], 'ignition' | 'speed_kmh'> }) =>
  telemetry.ignition === 'on' || (telemetry.speed_kmh ?? 0) > 0;

/** The newest of some times; null: none is known. */
export const newest = (times: (string | null)[]): string | null => times.filter((at) => at !== null).sort().at(-1) ?? null;

/** Whether a value needs an age next to that of its group, whose newest value is of that time. */
export const lags = (at: string | null, of: string | null): boolean =>
  at !== null && of !== null && Date.parse(of) - Date.parse(at) > minute;
