// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Me } from '../api/client';
import { session } from '../state/session.svelte';
import { en } from '../texts/en';
import { at, doubled, Envelope, openConsole, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  answers = { ...doubled, halts: [] };
  pages = await openConsole(answers);
  await pages.open('#/', 'tr[data-vehicle]');
});
afterEach(() => {
  pages.close();
  vi.restoreAllMocks();
});

it('loads the page again once another person has signed in, in another tab', async () => {
  const reload = vi.spyOn(location, 'reload').mockImplementation(() => {});
  const tab = new BroadcastChannel(`session ${new URL('.', location.href).pathname}`);
  tab.postMessage(JSON.stringify({ ...(doubled.me as Me), expires_at: '' }));
  tab.postMessage(JSON.stringify({ subject: 'ben', role: 'admin', level: 'viewer', agency_id: null, scopes: [], expires_at: '' }));
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(1));
  tab.close();
});

it('says nothing of the access token to other tabs: it is renewed, and they would lose what is typed', async () => {
  const heard: string[] = [];
  const tab = new BroadcastChannel(`session ${new URL('.', location.href).pathname}`);
  tab.onmessage = ({ data }) => heard.push(data);
  for (const expires_at of [at(1), at(2)]) {
    answers.me = { ...(doubled.me as Me), expires_at };
    await session.read();
  }
  await vi.waitFor(() => expect(heard).toHaveLength(2));
  expect(heard[0]).toBe(heard[1]);
  tab.close();
});

it('goes on where it was once the person has signed in again, in another tab', async () => {
  const reload = vi.spyOn(location, 'reload').mockImplementation(() => {});
  const tab = new BroadcastChannel(`session ${new URL('.', location.href).pathname}`);
  answers.halts = new Envelope(401, { message: 'The session has ended.', error: { code: 'unauthenticated' } });
  await pages.send('halt', {});
  await pages.until(() => pages.texts('h1').includes('You are not signed in'));
  expect(reload).not.toHaveBeenCalled();
  tab.postMessage(JSON.stringify({ ...(doubled.me as Me), expires_at: '' }));
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(1));
  tab.close();
  session.isOver = false;
});

it('says that the session has not ended', async () => {
  answers['auth/sign-out'] = () => {
    throw new TypeError('Failed to fetch');
  };
  [...document.querySelectorAll('button')].find((b) => b.textContent === 'Sign out')?.click();
  await pages.until(() => pages.texts('[role="alert"]').includes(`Sign out: ${en.trouble.unanswered}`));
  expect(pages.errors).toEqual([]);
});
