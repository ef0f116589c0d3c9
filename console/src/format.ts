import type { Texts } from './texts/en';

/** How long ago a time is, in words; in the future counts as now: clocks differ. */
export function age(at: string | number | null | undefined, now: number, texts: Texts): string {
  if (!at) return texts.age.never;
  const seconds = Math.max(0, Math.round((now - (typeof at === 'number' ? at : Date.parse(at))) / 1000));
  if (seconds < 3) return texts.age.now;
  if (seconds < 90) return texts.age.seconds(seconds);
  if (seconds < 90 * 60) return texts.age.minutes(Math.round(seconds / 60));
  if (seconds < 36 * 3600) return texts.age.hours(Math.round(seconds / 3600));
  return texts.age.days(Math.round(seconds / 86400));
}

// Each of these writes in a locale, such as en-GB, and in the zone of the browser; `local` has them in the locale of the pages.
// Hours are always from 0 to 23.

const parts = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;

/** How exactly a time of day is written. */
export type Precision = 'minute' | 'second' | 'tenth';

/** A time of day: 10:00, 10:00:03, 10:00:03.2. */
export function timeOfDay(at: string | number, locale: string, to: Precision = 'minute'): string {
  return new Date(at).toLocaleTimeString(locale, {
    ...parts,
    ...(to !== 'minute' && { second: '2-digit' }),
    ...(to === 'tenth' && { fractionalSecondDigits: 1 }),
  });
}

/** The day, with its year unless that is now. */
export function day(at: string | number, locale: string, now = Date.now()): string {
  const date = new Date(at);
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleDateString(locale, { weekday: 'short', day: 'numeric', month: 'short', ...(!isThisYear && { year: 'numeric' }) });
}

/** The weekday and the day of its month: for axes. */
export const weekday = (at: string | number, locale: string): string =>
  new Date(at).toLocaleDateString(locale, { weekday: 'short', day: 'numeric' });

/** A time, with its day unless that is today, and with its zone where that differs from now's: before or after the clocks change. */
export function moment(at: string | number, locale: string, now = Date.now(), to: Precision = 'minute'): string {
  const zone = new Date(at).getTimezoneOffset() === new Date(now).getTimezoneOffset() ? '' : ` ${zoneName(locale, at)}`;
  const clock = timeOfDay(at, locale, to) + zone;
  return new Date(at).toDateString() === new Date(now).toDateString() ? clock : `${day(at, locale, now)}, ${clock}`;
}

/** The zone of all times, as people call it: CET, GMT+1. */
export function zoneName(locale: string, at: string | number = Date.now()): string {
  const named = new Intl.DateTimeFormat(locale, { timeZoneName: 'short' }).formatToParts(new Date(at));
  return named.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

/** The zone of all times, by its place: Europe/Berlin. */
export const zonePlace = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone;

export const number = (value: number, locale: string, digits = 0): string =>
  value.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const percent = (value: number, locale: string): string => `${number(value, locale)} %`;

/** How long something took: 34 ms, 6.9 s, 75 s. */
export function took(ms: number, locale: string): string {
  if (ms < 1000) return `${number(ms, locale)} ms`;
  return `${number(ms / 1000, locale, ms < 9_950 ? 1 : 0)} s`;
}

/** The last time that a field takes: a year has four digits. */
export const lastTime = '9999-12-31T23:59';

/** A time as a field of dates and times takes it: the browser's, to the minute. */
export const inputTime = (at: Date): string => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

/** The instant of such a field. Of an hour that comes twice, as clocks are set back, it is the first that is after a time. */
export function instantOf(typed: string, after: number): Date {
  const first = new Date(typed);
  const second = new Date(first.getTime() + 3_600_000);
  return first.getTime() <= after && inputTime(second) === typed ? second : first;
}

/** A value as it is, and a time as such. */
export function localTime(value: string | number, locale: string, now = Date.now()): string | number {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? moment(value, locale, now, 'second') : value;
}

/** A place as maps and navigators take it, in each language. */
export const coordinates = (latitude: number, longitude: number, digits = 5): string =>
  `${latitude.toFixed(digits)}, ${longitude.toFixed(digits)}`;

interface Levels<Value> {
  battery_level_percent: Value | null;
  fuel_level_percent: Value | null;
}

/** Energy in percent: the battery of an electric car, else the tank. */
export function energy(telemetry: Levels<number>): number | null {
  return telemetry.battery_level_percent ?? telemetry.fuel_level_percent;
}

/** When the energy was reported; null: not known. */
export function energyAt(telemetry: Levels<number>, times: Levels<string> | undefined): string | null {
  return times?.[telemetry.battery_level_percent === null ? 'fuel_level_percent' : 'battery_level_percent'] ?? null;
}

export const lowEnergyBelow = 20;

/** Compares texts as people sort them: M-MP 9 is before M-MP 10. */
export const { compare: compareTexts } = new Intl.Collator(undefined, { numeric: true });
