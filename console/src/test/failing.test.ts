// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it } from 'vitest';
import { halts } from '../state/halts.svelte';
import { vehicles } from '../state/vehicles.svelte';
import { booking, doubled, openConsole, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  answers = { ...doubled, halts: [] };
  pages = await openConsole(answers);
  await pages.open('#/', 'tr[data-vehicle]');
  await pages.until(() => pages.texts('.live').includes('Live') && pages.requests.some((r) => r.startsWith('GET vehicles?ids=')));
  await repair();
});
afterEach(() => pages.close());

const repair = () => {
  vehicles.presence(1, { status: 'online', last_seen: null });
  return pages.until(() => vehicles.all[0]?.contact === 'online');
};
const broken = { toString: () => { throw new Error('It is broken.'); } } as unknown as string;

it('an error of a page says that what is seen may be old, and leaves the rest alone', async () => {
  vehicles.presence(1, { status: broken, last_seen: null });
  await pages.until(() => pages.texts('[data-failed]').length === 1);
  expect(pages.texts('[data-failed]')[0]).toMatch(/may be old.*It is broken\./);
  expect(pages.texts('.live')).toEqual(['Not live']);
  expect(document.body.hasAttribute('data-stale')).toBe(true);
  await pages.press('k', { ctrlKey: true });
  await pages.until(() => document.querySelector('dialog[open] input'));
  document.querySelector('dialog[open]')?.dispatchEvent(new Event('cancel'));

  await repair();
  document.querySelector<HTMLButtonElement>('[data-failed] button')?.click();
  await pages.until(() => document.querySelector('tr[data-vehicle]'));
  expect(pages.texts('.live')).toEqual(['Live']);
  expect(document.body.hasAttribute('data-stale')).toBe(false);
});

it('an error of a page that was just loaded says so', async () => {
  answers['bookings/1'] = booking(1, { vehicle: null as never });
  await pages.open('#/bookings/1', '[data-failed]');
  expect(pages.texts('.live')).toEqual(['Not live']);
  expect(pages.errors.length).toBeGreaterThan(0);
});

it('an error of a banner says so, and leaves the page alone', async () => {
  halts.all = [null as never];
  await pages.until(() => pages.texts('[data-failed]').length === 1);
  expect(pages.texts('.live')).toEqual(['Not live']);
  expect(document.querySelector('tr[data-vehicle]')).not.toBeNull();
  await pages.open('#/units', 'tr[data-unit]');
  halts.all = [];
});

it('an error of a page ends with the page', async () => {
  vehicles.presence(1, { status: broken, last_seen: null });
  await pages.until(() => pages.texts('[data-failed]').length === 1);
  await pages.open('#/units', 'tr[data-unit]');
  expect(pages.texts('[data-failed]')).toEqual([]);
  expect(pages.texts('.live')).toEqual(['Live']);
  await repair();
});

it('an event that cannot be handled ends "Live" until everything was read again', async () => {
  answers.fleet = null;
  await pages.send('command', {});
  await pages.until(() => pages.texts('.live').includes('Not live'));
  expect(pages.texts('[role="alert"]').join()).toMatch(/could not handle an event: what you see may be old/);
  delete answers.fleet;
  await pages.until(() => pages.texts('.live').includes('Live'));
  expect(pages.texts('[role="alert"]').join()).not.toMatch(/may be old/);
});
