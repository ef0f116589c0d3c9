import type { Texts } from './texts/en';

/** How long ago a time is, in words; in the future counts as now: clocks differ. */
export function age(at: string | null | undefined, now: number, texts: Texts): string {
  if (!at) return texts.age.never;
  const seconds = Math.max(0, Math.round((now - Date.parse(at)) / 1000));
  if (seconds < 3) return texts.age.now;
  if (seconds < 90) return texts.age.seconds(seconds);
  if (seconds < 90 * 60) return texts.age.minutes(Math.round(seconds / 60));
  if (seconds < 36 * 3600) return texts.age.hours(Math.round(seconds / 3600));
  return texts.age.days(Math.round(seconds / 86400));
}

/** The time of day with seconds, in the zone of the browser. */
export function clockTime(at: string): string {
  return new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 1, hourCycle: 'h23' });
}

/** A time to the minute or the second, with its day unless that is today, in a language and the zone of the browser. */
export function moment(at: string | number, code: string, now = Date.now(), second?: '2-digit'): string {
  const time = new Date(at);
  const clock = time.toLocaleTimeString(code, { hour: '2-digit', minute: '2-digit', ...(second && { second }), hourCycle: 'h23' });
  if (time.toDateString() === new Date(now).toDateString()) return clock;
  return `${time.toLocaleDateString(code, { weekday: 'short', day: 'numeric', month: 'short' })}, ${clock}`;
}

/** How long something took: 34 ms, 6.9 s. */
export function took(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A value as it is, and a time in the zone of the browser. */
export function localTime(value: string | number): string | number {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? new Date(value).toLocaleString() : value;
}

/** Energy in percent: the battery of an electric car, else the tank. */
export function energy(telemetry: { battery_level_percent: number | null; fuel_level_percent: number | null }): number | null {
  return telemetry.battery_level_percent ?? telemetry.fuel_level_percent;
}

export const lowEnergyBelow = 20;
