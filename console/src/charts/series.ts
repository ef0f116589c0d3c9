// The history of a vehicle as what charts draw and tables say. Times are in milliseconds since 1970.
import type { VehicleHistory } from '../api/client';

export const metrics = ['energy', 'voltage', 'speed', 'signal'] as const;
export type Metric = (typeof metrics)[number];

// A unit that is online reports at least once in 10 minutes.
const silentAfter = 10 * 60_000;

type Value = number | null;

/** What a chart draws: the mean between the least and the greatest value of each time. Null where the vehicle was silent. */
export interface Series {
  at: number[];
  min: Value[];
  mean: Value[];
  max: Value[];
  /** Places of values without a neighbour, to which no line leads. */
  alone: number[];
}

/** The longest time between two values that belong together. */
export const silence = (bucketSeconds: number) => silentAfter + Math.max(60, bucketSeconds) * 1000;

export function series(history: VehicleHistory, metric: Metric): Series {
  const result: Series = { at: [], min: [], mean: [], max: [], alone: [] };
  const push = (at: number, min: Value, mean: Value, max: Value) => {
    result.at.push(at);
    result.min.push(min);
    result.mean.push(mean);
    result.max.push(max);
  };
  const limit = silence(history.bucket_seconds);
  const middle = history.bucket_seconds * 500;
  let last = -Infinity;
  history.times.forEach((begin, i) => {
    const mean = history[metric]?.avg[i] ?? null;
    if (mean === null) return; // reported without this value: that is no gap
    const at = Date.parse(begin) + middle;
    if (at - last > limit && last > 0) push(last + 1, null, null, null);
    push(at, history[metric]?.min[i] ?? mean, mean, history[metric]?.max[i] ?? mean);
    last = at;
  });
  const { at, mean, alone } = result;
  at.forEach((_, i) => {
    if (mean[i] !== null && (mean[i - 1] ?? null) === null && (mean[i + 1] ?? null) === null) alone.push(i);
  });
  return result;
}

export interface Extremes {
  latest: number;
  latestAt: number;
  min: number;
  max: number;
}

/** What a sentence says about a chart; null: it has no value. */
export function extremes({ at, min, mean, max }: Series): Extremes | null {
  const last = mean.findLastIndex((value) => value !== null);
  if (last < 0) return null;
  const known = (values: Value[]) => values.filter((value) => value !== null);
  return { latest: mean[last] ?? 0, latestAt: at[last] ?? 0, min: Math.min(...known(min)), max: Math.max(...known(max)) };
}

export interface Row {
  from: number;
  to: number;
  /** The least and the greatest value of each metric; null: none was reported. */
  values: Record<Metric, [number, number] | null>;
}

const minute = 60_000;
const steps = [5, 15, 60, 180, 360, 1440, 10_080].map((minutes) => minutes * minute);
const mostRows = 30;

/** The history as a table: as many rows as people read. Neighbours without a value are one row. */
export function rows(history: VehicleHistory): Row[] {
  const [from, to] = [Date.parse(history.from), Date.parse(history.to)];
  const step = steps.find((s) => (to - from) / s <= mostRows) ?? steps.at(-1)!;
  const result: Row[] = [];
  let i = 0;
  for (let begin = from; begin < to; begin += step) {
    const end = Math.min(begin + step, to);
    const row: Row = { from: begin, to: end, values: { energy: null, voltage: null, speed: null, signal: null } };
    for (; i < history.times.length && Date.parse(history.times[i] ?? '') < end; i++) {
      for (const metric of metrics) {
        const [min, max] = [history[metric]?.min[i] ?? null, history[metric]?.max[i] ?? null];
        if (min === null || max === null) continue;
        const before = row.values[metric];
        row.values[metric] = before ? [Math.min(before[0], min), Math.max(before[1], max)] : [min, max];
      }
    }
    const last = result.at(-1);
    if (last && isEmpty(row) && isEmpty(last)) last.to = end;
    else result.push(row);
  }
  return result;
}

export const isEmpty = (row: Row) => metrics.every((metric) => row.values[metric] === null);
