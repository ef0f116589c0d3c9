// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { doubled, openConsole, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  answers = { ...doubled, halts: [] };
  pages = await openConsole(answers);
  await pages.open('#/', 'tr[data-vehicle]');
});
afterEach(() => pages.close());

it('loads the page again once another person has signed in, in another tab', async () => {
  const reload = vi.spyOn(location, 'reload').mockImplementation(() => {});
  const tab = new BroadcastChannel('session');
  tab.postMessage(JSON.stringify(doubled.me));
  tab.postMessage(JSON.stringify({ subject: 'ben', role: 'admin', level: 'viewer', agency_id: null, scopes: [] }));
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(1));
  tab.close();
});

it('says that the session has not ended', async () => {
  answers['auth/sign-out'] = () => {
    throw new TypeError('Failed to fetch');
  };
  [...document.querySelectorAll('button')].find((b) => b.textContent === 'Sign out')?.click();
  await pages.until(() => pages.texts('[role="alert"]').includes('Sign out: This did not work: The service cannot be reached.'));
  expect(pages.errors).toEqual([]);
});
