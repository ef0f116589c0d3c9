// Where the life of a command is drawn.
import type { Command } from '../api/client';

export interface Mark {
  lane: 'call' | 'record' | 'published' | 'received' | 'executed';
  at: number; // milliseconds since it was ordered
  kind: 'point' | 'end';
}

export interface Drawing {
  span: number; // milliseconds that the drawing covers
  /** null: it lies beyond what is drawn. */
  deadline: number | null;
  expiry: number | null;
  call: { until: number; open: boolean };
  marks: Mark[];
  /** While the result was not known: from the publication on; if an answer came late, from the deadline to it. */
  unknown: { from: number; until: number } | null;
}

const leastSpan = 50;

/** Lays out the life of a command, at a time. */
export function lay(c: Command, now: number): Drawing {
  const start = Date.parse(c.requested_at);
  const since = (at: string) => Math.max(0, Date.parse(at) - start);
  const deadline = since(c.deadline);
  const expiry = since(c.expires_at);
  const end = c.completed_at === null ? Math.max(0, now - start) : since(c.completed_at);
  // A caller waits until the deadline at most; a late answer comes after it.
  const call = { until: Math.min(end, deadline), open: c.completed_at === null && end < deadline };
  const marks: Mark[] = [{ lane: 'record', at: 0, kind: 'point' }];
  const published = c.published_at.length ? c.published_at : c.sent_at ? [c.sent_at] : [];
  for (const at of published) marks.push({ lane: 'published', at: since(at), kind: 'point' });
  if (c.received_at) marks.push({ lane: 'received', at: since(c.received_at), kind: 'point' });
  if (c.completed_at && c.state !== 'expired' && c.state !== 'unknown') marks.push({ lane: 'executed', at: end, kind: 'end' });
  // As long as the command lived; while it is open, or its outcome unknown, up to the times that end it.
  const settled = c.completed_at !== null && c.state !== 'unknown' && c.state !== 'expired';
  const span = Math.max(settled ? leastSpan : expiry, end, ...marks.map((m) => m.at)) * 1.1;
  const from = published[0] ? since(published[0]) : 0;
  let unknown: Drawing['unknown'] = null;
  if (c.state === 'unknown') unknown = { from, until: span };
  else if (c.late) unknown = { from: Math.min(deadline, end), until: end };
  else if (c.completed_at === null && published.length > 0) unknown = { from, until: Math.max(from, end) };
  return {
    span,
    deadline: deadline <= span ? deadline : null,
    expiry: expiry <= span ? expiry : null,
    call,
    marks,
    unknown,
  };
}
