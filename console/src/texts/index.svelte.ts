// The texts of the chosen language: that of the browser, until a person chooses another one.
import { ApiError } from '../api/client';
import * as format from '../format';
import { clock } from '../state/clock.svelte';
import { keep } from '../state/storage';
import type { Texts } from './en';

/** What the languages call themselves. */
export const languages: Record<string, string> = { en: 'English', de: 'Deutsch' };

// The one that is spoken is loaded, and no other.
const load: Record<string, () => Promise<Texts>> = {
  en: async () => (await import('./en')).en,
  de: async () => (await import('./de')).de,
};

const stored = localStorage.getItem('language') ?? '';
const preferred = navigator.languages.map((l) => l.slice(0, 2)).find((l) => l in languages);

class Language {
  code = $state('en');
  /** There are none until begin has ended. */
  texts = $state.raw({} as Texts);
  /** Whether the texts of the language that was chosen could not be loaded. */
  missing = $state(false);
  #wanted = '';

  /** The language with the region that the browser has for it, for dates and amounts: en-GB. */
  get locale(): string {
    return navigator.languages.find((l) => l.slice(0, 2) === this.code) ?? this.code;
  }

  async #speak(code: string) {
    this.#wanted = code;
    const texts = await load[code]!();
    if (code !== this.#wanted) return; // another one was chosen meanwhile
    this.code = code;
    this.texts = texts;
    this.missing = false;
    document.documentElement.lang = code;
  }

  /** Speaks the language that was chosen once, else that of the browser, else English. Fails where none can be loaded. */
  async begin() {
    try {
      await this.#speak(stored in languages ? stored : (preferred ?? 'en'));
    } catch {
      await this.#speak('en');
      this.missing = true;
    }
  }

  /** Speaks a language from when its texts are loaded; where they cannot be, everything stays as it is. */
  async choose(code: string) {
    keep(localStorage, 'language', code);
    await this.#speak(code).catch(() => (this.missing = true));
  }
}

export const language = new Language();

/** The texts. Read it in markup, so that it follows the language. */
export const t = (): Texts => language.texts;

/** What to say of an error: that it did not work, unless that is not known. */
export function failure(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ApiError)) return t().failed(message);
  return error.isUnknown ? t().trouble.unanswered : error.code === 'no_answer' ? message : t().failed(message);
}

/** Of texts that load with a page, in all languages, those of the chosen one; read as the others. */
export const spoken = <Words>(texts: { en: Words; de: Words }): Words => texts[language.code as 'en' | 'de'];

/** Times, numbers and durations in the locale of the pages. Use them in markup, so that they follow the language. */
export const local = {
  /** How long ago a time is. Its readers wake when the words may change. */
  age: (at: string | number | null | undefined) => format.age(at, clock.since(at), t()),
  time: (at: string | number, to?: format.Precision) => format.timeOfDay(at, language.locale, to),
  day: (at: string | number, now?: number) => format.day(at, language.locale, now),
  weekday: (at: string | number) => format.weekday(at, language.locale),
  moment: (at: string | number, to?: format.Precision) => format.moment(at, language.locale, clock.seldom, to),
  /** The end of a time: with its day, unless that is the day of its begin. */
  until: (at: string | number, from: string | number) => format.moment(at, language.locale, new Date(from).getTime()),
  /** The zone of a time, which a season may change; of none, that of now. */
  zone: (at?: number) => format.zoneName(language.locale, at || undefined),
  number: (value: number, digits?: number) => format.number(value, language.locale, digits),
  percent: (value: number) => format.percent(value, language.locale),
  took: (ms: number) => format.took(ms, language.locale),
  value: (value: string | number) => format.localTime(value, language.locale),
};
