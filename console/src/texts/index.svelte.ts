// The texts of the chosen language: that of the browser, until a person chooses another one.
import * as format from '../format';
import { en, type Texts } from './en';

/** What the languages call themselves. */
export const languages: Record<string, string> = { en: en.language, de: 'Deutsch' };

// Those that few need are loaded when they are chosen.
const load: Record<string, () => Promise<Texts>> = { en: async () => en, de: async () => (await import('./de')).de };

const stored = localStorage.getItem('language') ?? '';
const preferred = navigator.languages.map((l) => l.slice(0, 2)).find((l) => l in languages);

class Language {
  code = $state('en');
  texts = $state.raw<Texts>(en);
  #wanted = 'en';

  /** The language with the region that the browser has for it, for dates and amounts: en-GB. */
  get locale(): string {
    return navigator.languages.find((l) => l.slice(0, 2) === this.code) ?? this.code;
  }

  /** Speaks a language from when its texts are loaded; where they cannot be, everything stays as it is. */
  async #speak(code: string) {
    this.#wanted = code;
    try {
      const texts = await load[code]?.();
      if (!texts || code !== this.#wanted) return; // another one was chosen meanwhile
      this.code = code;
      this.texts = texts;
      document.documentElement.lang = code;
    } catch (error) {
      console.error(`the texts of ${code} cannot be loaded`, error);
    }
  }

  /** Speaks the language that was chosen once, or else that of the browser. */
  begin(): Promise<void> {
    return this.#speak(stored in languages ? stored : (preferred ?? 'en'));
  }

  choose(code: string) {
    localStorage.setItem('language', code);
    void this.#speak(code);
  }
}

export const language = new Language();

/** The texts. Read it in markup, so that it follows the language. */
export const t = (): Texts => language.texts;

/** Times, numbers and durations in the locale of the pages. Use them in markup, so that they follow the language. */
export const local = {
  time: (at: string | number, to?: format.Precision) => format.timeOfDay(at, language.locale, to),
  day: (at: string | number, now?: number) => format.day(at, language.locale, now),
  weekday: (at: string | number) => format.weekday(at, language.locale),
  moment: (at: string | number, now?: number, to?: format.Precision) => format.moment(at, language.locale, now, to),
  zone: () => format.zoneName(language.locale),
  number: (value: number, digits?: number) => format.number(value, language.locale, digits),
  percent: (value: number) => format.percent(value, language.locale),
  took: (ms: number) => format.took(ms, language.locale),
  value: (value: string | number) => format.localTime(value, language.locale),
};
