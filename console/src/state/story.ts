// The life of a command in words: what happened, in order.
import type { Activity, Command } from '../api/client';

export interface Step {
  kind: 'ordered' | 'published' | 'received' | 'ended' | 'late' | 'deadline' | 'expiry' | 'answered';
  at: string;
  /** Which publication it is. */
  n?: number;
  /** The recorded answers of callers. */
  entry?: Activity;
  /** It has not come yet. */
  ahead: boolean;
}

/** Tells what is known of a command at a time. Entries are those of the audit log that are about it. */
export function story(c: Command, entries: Activity[], now: number): Step[] {
  const steps: Step[] = [];
  const add = (kind: Step['kind'], at: string | null, more: Partial<Step> = {}) => {
    if (at) steps.push({ kind, at, ahead: Date.parse(at) > now && (kind === 'deadline' || kind === 'expiry'), ...more });
  };
  add('ordered', c.requested_at);
  const published = c.published_at.length ? c.published_at : c.sent_at ? [c.sent_at] : [];
  published.forEach((at, i) => add('published', at, { n: i + 1 }));
  add('received', c.received_at);
  if (c.late) add('late', c.completed_at);
  // An unknown outcome is the end of waiting, which the deadline says.
  else if (c.state !== 'unknown') add('ended', c.completed_at);
  for (const entry of entries) if (entry.command_id === c.id) add('answered', entry.at, { entry });
  // What has ended before them is not concerned.
  const ended = c.completed_at !== null && c.state !== 'unknown' ? Date.parse(c.completed_at) : Infinity;
  if (Date.parse(c.deadline) < ended) add('deadline', c.deadline);
  if (Date.parse(c.expires_at) < ended) add('expiry', c.expires_at);
  const order = ['ordered', 'published', 'received', 'ended', 'late', 'deadline', 'answered', 'expiry'];
  return steps.sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || order.indexOf(a.kind) - order.indexOf(b.kind));
}
