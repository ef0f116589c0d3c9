// The results of a bulk: one row for each vehicle.
import type { BulkCommand, Command } from '../api/client';
import { unique } from '../unique';
import { isNewer } from './commands.svelte';

/** What may be believed about a vehicle; refused: nothing was sent. */
export type Kind = 'open' | 'executed' | 'refused' | 'not_executed' | 'failed' | 'unknown';

export const kinds: Kind[] = ['open', 'executed', 'unknown', 'failed', 'not_executed', 'refused'];

export interface Row {
  vehicle: number;
  command: Command | null;
  kind: Kind;
  /** Why, in the words of the API, and by its code; null: it has none, or none yet. */
  message: string | null;
  error: BulkCommand['items'][number]['error'];
  /** Milliseconds from the order to its end; null: it has not ended. */
  took: number | null;
}

/** Joins what was read of a bulk with what events have said of its commands since. */
export function rowsOf(bulk: BulkCommand, known: (id: string) => Command | undefined): Row[] {
  return unique(bulk.items, (item) => item.vehicle_id).map((item) => {
    const event = item.command ? known(item.command.id) : undefined;
    const command = event && isNewer(event, item.command ?? undefined) ? event : item.command;
    // A message is of the state that was read with it.
    const same = command === null || (command.state === item.command?.state && command.late === item.command.late);
    return {
      vehicle: item.vehicle_id,
      command,
      kind: kindOf(command, item.error !== null),
      message: same ? item.message : null,
      error: same ? item.error : null,
      took: command?.completed_at ? Math.max(0, Date.parse(command.completed_at) - Date.parse(command.requested_at)) : null,
    };
  });
}

function kindOf(command: Command | null, refused: boolean): Kind {
  if (command === null) return refused ? 'refused' : 'open';
  const { outcome } = command;
  return outcome === null ? 'open' : (kinds.find((kind) => kind === outcome) ?? 'unknown');
}

/** How many vehicles there are of each kind. */
export function count(rows: Row[]): Record<Kind, number> {
  const counts = Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Kind, number>;
  for (const row of rows) counts[row.kind]++;
  return counts;
}

/** Whether a row has settled since the bulk was read, so that there may be a reason to read. */
export function isStale(rows: Row[]): boolean {
  return rows.some((row) => row.message === null && !['open', 'executed'].includes(row.kind));
}
