// @vitest-environment happy-dom
import { expect, it } from 'vitest';
import { de } from './de';
import { en } from './en';
import { language, languages, t } from './index.svelte';

it('speaks the language that was chosen last, once its texts are loaded', async () => {
  expect(languages).toEqual({ en: en.language, de: de.language });
  await language.begin(); // that of the browser
  expect([t().language, document.documentElement.lang]).toEqual(['English', 'en']);
  language.choose('de');
  await expect.poll(() => t().language).toBe('Deutsch');
  expect([document.documentElement.lang, localStorage.getItem('language')]).toEqual(['de', 'de']);
  language.choose('en');
  language.choose('de');
  language.choose('en');
  await new Promise((done) => setTimeout(done, 50));
  expect([language.code, t().language]).toEqual(['en', 'English']);
});
