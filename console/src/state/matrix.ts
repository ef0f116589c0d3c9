// The results of a bulk: one row for each vehicle.
import type { BulkCommand, Command } from '../api/client';
import { unique } from '../unique';
import { isNewer } from './merge';

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
  /** Milliseconds from the order to each step; null: it has not happened. */
  steps: { accepted: number | null; sent: number | null; received: number | null; ended: number | null };
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
      steps: stepsOf(command),
    };
  });
}

function kindOf(command: Command | null, refused: boolean): Kind {
  if (command === null) return refused ? 'refused' : 'open';
  return command.outcome ?? 'open';
}

function stepsOf(c: Command | null): Row['steps'] {
  if (!c) return { accepted: null, sent: null, received: null, ended: null };
  const since = (at: string | null | undefined) => (at ? Math.max(0, Date.parse(at) - Date.parse(c.requested_at)) : null);
  return { accepted: 0, sent: since(c.published_at[0] ?? c.sent_at), received: since(c.received_at), ended: since(c.completed_at) };
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
