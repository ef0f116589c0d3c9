// How far what a vehicle has reported can still be believed.
import type { VehicleStatus } from './api/client';

export type Freshness = 'fresh' | 'aging' | 'old';
const minute = 60_000;

/** How far a value can be believed to hold still: what moves changes sooner. */
export function freshness(at: string | null, now: number, moving: boolean): Freshness {
  if (at === null) return 'old';
  const age = now - Date.parse(at);
  const [aging, old] = moving ? [2 * minute, 10 * minute] : [10 * minute, 60 * minute];
  return age < aging ? 'fresh' : age < old ? 'aging' : 'old';
}

export const isMoving = ({ telemetry }: { telemetry: Pick<VehicleStatus['telemetry'], 'ignition' | 'speed_kmh'> }) =>
  telemetry.ignition === 'on' || (telemetry.speed_kmh ?? 0) > 0;
