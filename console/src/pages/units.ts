// What is wrong with a unit, in words.
import type { Unit, UnknownUnit } from '../api/client';
import { age, number } from '../format';
import type { Column } from '../csv';
import type { Texts } from '../texts/en';
import type { UnitWords } from '../texts/units';

export type Problem = Unit['problems'][number];
export type Reject = Unit['rejects'][number];

export const problems: readonly Problem[] = ['never_seen', 'silent', 'key', 'commands', 'clock', 'rejects', 'reconnects', 'signal'];

/** Problems that cost no command yet. */
export const mild: readonly Problem[] = ['rejects', 'reconnects', 'signal'];

/** The units with the most severe problems first, if that can be known: all have been read. */
export function bySeverity(units: Unit[], complete: boolean): Unit[] {
  const rank = (unit: Unit) => (unit.problems[0] ? problems.indexOf(unit.problems[0]) : problems.length);
  return complete ? [...units].sort((a, b) => rank(a) - rank(b) || b.problems.length - a.problems.length) : units;
}

export const views = ['trouble', 'all', 'rejects', 'unknown'] as const;
export type View = (typeof views)[number];

/** The view that the address of the page names. */
export function viewOf(name: string | null): View {
  return views.find((view) => view === name) ?? 'trouble';
}

/** The parameters of the API for a view and its filters. */
export function unitParameters(
  view: View,
  filters: { problem: string; connectivity: string; agency_id: string; q: string },
): URLSearchParams {
  const problem = { trouble: filters.problem || 'any', rejects: 'rejects', all: '', unknown: '' }[view];
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...filters, problem })) if (value) parameters.set(name, value);
  return parameters;
}

/** A problem of a unit: what is the case, what that means, what to do, and the reasons that were counted. */
export interface Finding {
  problem: Problem;
  fact: string;
  meaning: string;
  todo: string;
  reasons: { name: string; reject: Reject }[];
}

export function findings(unit: Unit, now: number, texts: Texts, words: UnitWords, locale: string): Finding[] {
  return unit.problems.map((problem) => ({
    problem,
    fact: fact(problem, unit, now, texts, words, locale),
    meaning: words.meanings[problem === 'clock' && (unit.clock?.error_ms ?? 0) < 0 ? 'clock_slow' : problem] ?? '',
    todo: words.todos[problem] ?? '',
    reasons: {
      rejects: unit.rejects.map((reject) => ({ name: words.rejects[reject.reason] ?? reject.reason, reject })),
      commands: unit.rejected_commands.map((reject) => ({ name: texts.units.rejections[reject.reason] ?? reject.reason, reject })),
    }[problem as string] ?? [],
  }));
}

function fact(problem: Problem, unit: Unit, now: number, texts: Texts, words: UnitWords, locale: string): string {
  const { facts } = words;
  switch (problem) {
    case 'silent':
      return facts.silent(age(unit.connectivity.last_seen, now, texts));
    case 'commands':
      return facts.commands(sum(unit.rejected_commands));
    case 'clock':
      return facts.clock(clockError(unit.clock?.error_ms ?? 0, texts, words, locale));
    case 'rejects':
      return facts.rejects(sum(unit.rejects));
    case 'reconnects':
      return facts.reconnects(unit.reconnects ?? 0);
    default:
      return facts[problem];
  }
}

export const sum = (rejects: Reject[]) => rejects.reduce((all, { count }) => all + count, 0);

// What reports take on their way makes each clock seem to be slow: by so much in a good network, and in a bad one.
const rightWithin = 2_000;
const maybeRightWithin = 60_000;

/** How far a clock is off: 1.2 s fast, at most 4 s slow, 3 h slow. */
export function clockError(ms: number, { units }: Texts, words: UnitWords, locale: string): string {
  if (Math.abs(ms) < rightWithin) return words.clockRight;
  const seconds = Math.abs(ms) / 1000;
  const by =
    seconds < 90
      ? words.duration.seconds(number(seconds, locale, seconds < 10 ? 1 : 0))
      : seconds < 90 * 60
        ? words.duration.minutes(number(seconds / 60, locale))
        : seconds < 36 * 3600
          ? words.duration.hours(number(seconds / 3600, locale))
          : words.duration.days(number(seconds / 86400, locale));
  if (ms > 0) return units.ahead(by);
  return -ms > maybeRightWithin ? units.behind(by) : words.atMost(units.behind(by));
}

const counts = (rejects: Reject[]) => rejects.map(({ reason, count }) => `${reason} ${count}`).join('; ');

export const unitColumns: readonly Column<Unit>[] = [
  'unit',
  'vehicle_id',
  'plate_number',
  'agency_id',
  'protocol',
  ['connectivity', (u) => u.connectivity.status],
  ['last_seen', (u) => u.connectivity.last_seen],
  'firmware_version',
  'signal_quality',
  'rsrp_dbm',
  ['clock_error_ms', (u) => u.clock?.error_ms ?? null],
  ['clock_measured_at', (u) => u.clock?.measured_at ?? null],
  'reconnects',
  ['rejects', (u) => counts(u.rejects)],
  ['rejected_commands', (u) => counts(u.rejected_commands)],
  ['keys', (u) => u.keys?.join(' ') ?? null],
  ['problems', (u) => u.problems.join(' ')],
];

export const unknownColumns: readonly Column<UnknownUnit>[] = ['unit', 'first_seen', 'last_seen', 'messages'];
