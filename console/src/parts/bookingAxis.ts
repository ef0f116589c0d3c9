// Where a booking is drawn in time: in proportion while it lasts, and what lies long before or after
// it in a narrow separate part.

export interface Part {
  from: number;
  to: number;
  left: number;
  right: number;
  /** Not in proportion to the time of the booking. */
  short: boolean;
}

export interface Axis {
  parts: Part[];
  x(at: number): number;
  /** Marks of whole minutes, hours or days; day: a day begins. */
  ticks: { x: number; at: number; day: boolean }[];
  byDay: boolean;
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const steps = [
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  hour,
  2 * hour,
  3 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  7 * day,
  14 * day,
  28 * day,
];
const perTick = 85; // pixels
const shortShare = 0.16;
// What lies no further away than this share of the booking is drawn in proportion.
const near = 0.2;

/** Lays out the time from one instant to another, with what happened outside of it, between two edges. */
export function axis(from: number, to: number, happened: number[], left: number, right: number): Axis {
  const length = Math.max(to - from, minute);
  const first = Math.min(from, ...happened);
  const last = Math.max(to, ...happened);
  const isEarly = from - first > length * near;
  const isLate = last - to > length * near;
  const width = right - left;
  // A little air, so that a mark at the edge is whole.
  const start = (isEarly ? from : first) - length * 0.02;
  const end = (isLate ? to : last) + length * 0.02;
  const parts: Part[] = [];
  const core: Part = {
    from: start,
    to: end,
    left: left + (isEarly ? width * shortShare : 0),
    right: right - (isLate ? width * shortShare : 0),
    short: false,
  };
  if (isEarly) parts.push({ from: first - (start - first) * 0.1, to: start, left, right: core.left, short: true });
  parts.push(core);
  if (isLate) parts.push({ from: end, to: last + (last - end) * 0.1, left: core.right, right, short: true });
  const x = (at: number) => {
    const part = parts.find((p) => at <= p.to) ?? parts.at(-1)!;
    const share = (at - part.from) / (part.to - part.from);
    return part.left + Math.min(1, Math.max(0, share)) * (part.right - part.left);
  };
  const wanted = Math.max(2, Math.floor((core.right - core.left) / perTick));
  const step = steps.find((s) => (end - start) / s <= wanted) ?? Math.ceil((end - start) / wanted / (28 * day)) * 28 * day;
  const zone = new Date(start).getTimezoneOffset() * minute;
  const ticks: Axis['ticks'] = [];
  for (let at = Math.ceil((start - zone) / step) * step + zone; at <= end; at += step) {
    ticks.push({ x: x(at), at, day: (at - zone) % day === 0 });
  }
  return { parts, x, ticks, byDay: step >= day };
}

/** Marks that would cover each other, together. */
export function cluster<Mark extends { x: number }>(marks: Mark[], apart: number): { x: number; marks: Mark[] }[] {
  const clusters: { x: number; marks: Mark[] }[] = [];
  for (const mark of [...marks].sort((a, b) => a.x - b.x)) {
    const last = clusters.at(-1);
    if (last && mark.x - last.x < apart) last.marks.push(mark);
    else clusters.push({ x: mark.x, marks: [mark] });
  }
  return clusters;
}
