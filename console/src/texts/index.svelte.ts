// The texts of the chosen language: that of the browser, until a person chooses another one.
import * as format from '../format';
import { de } from './de';
import { en, type Texts } from './en';

export const languages: Record<string, Texts> = { en, de };

const stored = localStorage.getItem('language') ?? '';
const preferred = navigator.languages.map((l) => l.slice(0, 2)).find((l) => l in languages);

class Language {
  code = $state(stored in languages ? stored : (preferred ?? 'en'));

  /** The language with the region that the browser has for it, for dates and amounts: en-GB. */
  get locale(): string {
    return navigator.languages.find((l) => l.slice(0, 2) === this.code) ?? this.code;
  }

  choose(code: string) {
    this.code = code;
    localStorage.setItem('language', code);
    document.documentElement.lang = code;
  }
}

export const language = new Language();
document.documentElement.lang = language.code;

/** The texts. Read it in markup, so that it follows the language. */
export const t = (): Texts => languages[language.code] ?? en;

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
