// What the palette finds: vehicles, what may be done to them, pages and settings.
import { compact } from '../pages/match';
import type { Ordered } from './actions';
import type { VehicleRow } from './vehicleRow';

/** Something that can be chosen besides vehicles. */
export interface Item {
  id: string;
  label: string;
  /** Further words by which it is found. */
  words?: string;
}

export type Found =
  | { kind: 'item'; item: Item; score: number }
  | { kind: 'vehicle'; vehicle: VehicleRow; score: number }
  | { kind: 'action'; vehicle: VehicleRow; action: Ordered; score: number };

// What fits worse than the best by so much is no answer to the same question.
const worse = 0.9;

/** Finds what a query means, best first: `lock M-IM 2101`, `mim2101`, `halt`, `comm`. */
export function find(
  query: string,
  items: Item[],
  vehicles: Iterable<VehicleRow>,
  actionNames: [Ordered, string][],
  current: number | null,
): Found[] {
  const words = wordsOf(query);
  const found: Found[] = [];
  for (const item of items) {
    const score = scoreAll(words, `${item.label} ${item.words ?? ''}`);
    if (score !== null) found.push({ kind: 'item', item, score: score + 0.5 });
  }
  const actionsBy = (rest: string[]) =>
    actionNames.flatMap(([action, name]) => {
      const score = scoreAll(rest, `${name} ${action}`);
      return score === null ? [] : [{ action, score }];
    });
  for (const vehicle of vehicles) {
    const text = `${vehicle.text} ${compact(vehicle.plate)}`;
    const scores = words.map((word) => scoreWord(word, text) ?? scoreWord(compact(word), text));
    const own = scores.filter((score) => score !== null);
    if (own.length === words.length && words.length > 0) found.push({ kind: 'vehicle', vehicle, score: mean(own) + 0.2 });
    if (own.length === 0 && vehicle.id !== current) continue;
    const rest = words.filter((_, i) => scores[i] === null);
    if (rest.length === 0) continue;
    for (const { action, score } of actionsBy(rest)) found.push({ kind: 'action', vehicle, action, score: mean([...own, score]) + 0.1 });
  }
  found.sort((a, b) => b.score - a.score);
  const best = found.filter(({ score }) => words.length === 0 || score > (found[0]?.score ?? 0) - worse);
  const [only] = best;
  if (best.length === 1 && only?.kind === 'vehicle')
    for (const [action] of actionNames) best.push({ kind: 'action', vehicle: only.vehicle, action, score: 0 });
  return best;
}

/** The references that a query may mean, of this year and the one before: BK-2026-00042, 2026-00042, 00042. */
export function referencesOf(query: string, year: number): string[] {
  const [, of, number] = query.trim().match(/^(?:(?:bk-)?(\d{4})-)?(\d{5,15})$/i) ?? [];
  return number ? (of ? [of] : [year, year - 1]).map((of) => `BK-${of}-${number}`) : [];
}

/** The page of the booking that a query names by its id, such as booking 2; null: it names none. */
export function bookingPage(query: string): string | null {
  const found = query.trim().match(/^(?:bk|booking|buchung)\s*(\d{1,15})$/i);
  return found && `#/bookings/${found[1]}`;
}

const wordsOf = (query: string) => query.toLowerCase().split(/\s+/).filter(Boolean);
const mean = (scores: number[]) => scores.reduce((a, b) => a + b, 0) / scores.length;

function scoreAll(words: string[], text: string): number | null {
  if (words.length === 0) return 0;
  const scores = words.map((word) => scoreWord(word, text));
  return scores.includes(null) ? null : mean(scores as number[]);
}

/** 3: a whole word of the text, 2: how one begins, 1: inside of one, 0.5: its letters in order; null: none of these. */
export function scoreWord(word: string, text: string): number | null {
  let best: number | null = null;
  for (const token of text.toLowerCase().split(/\s+/)) {
    const score = token === word ? 3 : token.startsWith(word) ? 2 : token.includes(word) ? 1 : isSubsequence(word, token) ? 0.5 : null;
    if (score !== null && (best === null || score > best)) best = score;
  }
  return best;
}

function isSubsequence(word: string, token: string): boolean {
  if (word.length < 3 || word.length * 2 < token.length || /\d/.test(word)) return false;
  let at = 0;
  for (const letter of token) if (letter === word[at]) at++;
  return at === word.length;
}
