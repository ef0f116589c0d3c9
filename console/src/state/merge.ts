import type { StatusMeta, VehicleStatus } from '../api/client';
import type { StatusChange } from '../api/events';

/** A report is a sign of life. */
function later(known: string | null, at: string): string {
  return known !== null && known > at ? known : at;
}

type Fields = Record<string, unknown>;
type Ages = Pick<StatusMeta, 'sections' | 'older'>;

const sections = ['location', 'telemetry', 'diagnostics', 'connectivity', 'oem_data'] as const;
const isGroup = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of a section by their places, such as telemetry.doors.trunk. */
function leaves(fields: Fields, prefix: string): [place: string, value: unknown][] {
  return Object.entries(fields).flatMap(([name, value]): [string, unknown][] =>
    isGroup(value) && prefix !== 'oem_data.' ? leaves(value, `${prefix}${name}.`) : [[prefix + name, value]],
  );
}

/** Returns fields with those of a change that count. */
function joined(known: Fields, change: Fields, prefix: string, counts: (place: string) => boolean): Fields {
  const result = { ...known };
  for (const [name, value] of Object.entries(change)) {
    const before = result[name];
    if (isGroup(before) && isGroup(value)) result[name] = joined(before, value, `${prefix}${name}.`, counts);
    else if (counts(prefix + name)) result[name] = value;
  }
  return result;
}

/** Returns a status and its ages with what a report has changed. Of each field the newer value counts: events may be late. */
export function mergeStatus(status: VehicleStatus, ages: Ages, change: StatusChange): { status: VehicleStatus; ages: Ages } {
  const next: Fields = { ...status };
  const result: Ages = { sections: { ...ages.sections }, older: { ...ages.older } };
  for (const section of sections) {
    const changed = change[section];
    if (!isGroup(changed)) continue;
    const prefix = `${section}.`;
    const before = ages.sections[section];
    const known = new Map(leaves(status[section] as Fields, prefix).filter(([, value]) => value !== null));
    const counts = (place: string) => !known.has(place) || change.at >= (ages.older[place] ?? before ?? '');
    if (before === null || change.at > before) {
      // What the report does not have is as old as before.
      if (before !== null) for (const place of known.keys()) result.older[place] ??= before;
      result.sections[section] = change.at;
    }
    for (const [place, value] of leaves(changed, prefix)) {
      if (!counts(place)) continue;
      if (value !== null && change.at < (result.sections[section] ?? '')) result.older[place] = change.at;
      else delete result.older[place];
    }
    if (section === 'oem_data') {
      if (before === null || change.at >= before) next[section] = manufacturers(status[section], changed);
    } else next[section] = joined(status[section] as Fields, changed, prefix, counts);
  }
  const moved = change.location && ('latitude' in change.location || 'longitude' in change.location);
  const location = next.location as VehicleStatus['location'];
  const at = (change.location?.timestamp as string | undefined) ?? change.at;
  // The address was of the former position.
  if (moved && at >= (status.location.timestamp ?? '')) next.location = { ...location, timestamp: at, address: null };
  const connectivity = next.connectivity as VehicleStatus['connectivity'];
  next.connectivity = { ...connectivity, last_seen: later(connectivity.last_seen, change.at) };
  return { status: next as VehicleStatus, ages: result };
}

/** An event has all of it, but for the raw values of other fields. */
function manufacturers(known: Fields, changed: Fields): Fields {
  const { charging_status, dtcs_raw } = known;
  const all = { charging_status, dtcs_raw, ...changed };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== null));
}
