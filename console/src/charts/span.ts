// The time that charts and a track show.
import type { VehicleHistory } from '../api/client';

const hour = 3_600_000;

export const names = ['hour', 'six', 'day', 'three', 'week', 'all', 'booking'] as const;
export type SpanName = (typeof names)[number];

const mostDays = 31; // in one answer

const hours: Record<Exclude<SpanName, 'all' | 'booking'>, number> = { hour: 1, six: 6, day: 24, three: 72, week: 168 };

/** The spans of which something is kept; days: for how many, null: not known yet. */
export function offered(days: number | null, hasBooking: boolean): SpanName[] {
  return names.filter((name) => {
    if (name === 'booking') return hasBooking;
    if (name === 'all') return days !== null && length('all', days) > hours.week * hour;
    // The first one that is longer than what is kept shows all of it.
    const shorter = Object.values(hours).findLast((h) => h < hours[name]) ?? 0;
    return days === null || shorter < days * 24;
  });
}

/** How long a span is, in milliseconds. */
export function length(name: Exclude<SpanName, 'booking'>, days: number): number {
  return (name === 'all' ? Math.min(days, mostDays) * 24 : hours[name]) * hour;
}

export interface Span {
  from: number;
  to: number;
}

/** The span that is a number of steps before now. It does not begin before what is kept. */
export function spanAt(name: Exclude<SpanName, 'booking'>, steps: number, days: number, now: number): Span {
  const to = now - steps * length(name, days);
  return { from: to - length(name, days), to };
}

const leastAxis = 10 * 60_000;

/** The time that the charts of a history show: from its first values on, as a vehicle that is new has no empty days. */
export function axis({ from, to, times }: Pick<VehicleHistory, 'from' | 'to' | 'times'>): Span {
  const [begin, end] = [Date.parse(from), Date.parse(to)];
  return { from: Math.max(begin, Math.min(times[0] ? Date.parse(times[0]) : begin, end - leastAxis)), to: end };
}

/** Whether something is kept of the time before a span. */
export const hasEarlier = ({ from }: Span, days: number, now: number) => from > now - days * 24 * hour;
