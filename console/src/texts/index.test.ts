// @vitest-environment happy-dom
import { expect, it, vi } from 'vitest';
import { language, languages, t } from './index.svelte';

const loaded = vi.hoisted((): string[] => []);
const missing = vi.hoisted(() => new Set<string>());
const load = (code: string) => {
  if (missing.has(code)) throw new Error(`${code} is not there`);
  loaded.push(code);
};
vi.mock('./en', async (original) => (load('en'), await original()));
vi.mock('./de', async (original) => (load('de'), await original()));

it('loads the language that is spoken, and no other', async () => {
  await language.begin(); // that of the browser
  expect([t().language, document.documentElement.lang]).toEqual(['English', 'en']);
  expect(loaded).toEqual(['en']);

  missing.add('de');
  vi.spyOn(console, 'error').mockImplementation(() => {});
  await language.choose('de');
  expect([t().language, language.missing]).toEqual(['English', true]);
  missing.delete('de');

  await language.choose('de');
  expect([t().language, language.missing]).toEqual(['Deutsch', false]);
  expect(languages).toEqual({ en: 'English', de: t().language });
  expect([document.documentElement.lang, localStorage.getItem('language')]).toEqual(['de', 'de']);
  const choices = [language.choose('en'), language.choose('de'), language.choose('en')];
  await Promise.all(choices);
  expect([language.code, t().language]).toEqual(['en', 'English']);
});

it('speaks English where another language cannot be loaded, and fails where there is none', async () => {
  localStorage.setItem('language', 'de');
  const begin = async (gone: string) => {
    vi.resetModules();
    vi.doMock(gone, () => {
      throw new Error('It is not there.');
    });
    const { language } = await import('./index.svelte');
    await language.begin();
    return language;
  };
  const { texts, missing: isMissing } = await begin('./de');
  expect([texts.language, isMissing]).toEqual(['English', true]);
  await expect(begin('./en')).rejects.toThrow();
});
