import type { Command, VehicleSummary } from '../api/client';
import type { StatusChange } from '../api/events';

/** Returns a vehicle with what a report has changed; groups keep what the report does not have. */
export function merge(vehicle: VehicleSummary, change: StatusChange): VehicleSummary {
  const location = { ...vehicle.location, ...change.location };
  if (change.location && ('latitude' in change.location || 'longitude' in change.location)) {
    location.timestamp = change.at;
    location.address = null; // of the former position
  }
  return {
    ...vehicle,
    location,
    telemetry: { ...vehicle.telemetry, ...change.telemetry },
    diagnostics: { ...vehicle.diagnostics, ...change.diagnostics },
    connectivity: { ...vehicle.connectivity, ...change.connectivity, last_seen: later(vehicle.connectivity.last_seen, change.at) },
  };
}

/** A report is a sign of life. */
function later(known: string | null, at: string): string {
  return known !== null && known > at ? known : at;
}

const rank = { accepted: 0, sent: 1, received: 2 } as Record<string, number>;

/** Whether one reading of a command is newer than another: events may overtake each other. */
export function isNewer(read: Command, known: Command | undefined): boolean {
  if (!known) return true;
  if (read.completed_at !== known.completed_at) {
    return known.completed_at === null || (read.completed_at !== null && read.completed_at > known.completed_at);
  }
  if (read.completed_at !== null) return true; // the same end, perhaps contradicted since
  const [newer, older] = [rank[read.state] ?? 3, rank[known.state] ?? 3];
  return newer > older || (newer === older && read.attempts >= known.attempts);
}
