// @vitest-environment happy-dom
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { session } from '../state/session.svelte';
import { at, doubled, openConsole, type Pages } from './service';

let pages: Pages;
const written: object[] = [];
let isRead = true;
let answered = Promise.resolve();
const notes = async (_: string, { method, body }: RequestInit) => {
  if (method === 'POST') written.unshift({ at: at(5), by: 'zoe', vehicle_id: 1, booking_id: null, ...JSON.parse(String(body)) });
  if (method === 'POST' && !isRead) throw new Error('lost');
  if (method === 'POST') await answered;
  return method === 'POST' ? written[0] : written;
};
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  sessionStorage.clear();
  written.length = 0;
  isRead = true;
  answered = Promise.resolve();
  pages = await openConsole({ ...doubled, halts: [], 'vehicles/1/notes': notes, 'bookings/1/notes': notes });
});
afterEach(() => pages.close());

const field = () => document.querySelector<HTMLTextAreaElement>('textarea[name="note"]')!;
async function write(text: string) {
  field().value = text;
  field().dispatchEvent(new Event('input', { bubbles: true }));
  field().form!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => pages.texts('[data-notes] li p').includes(text.replace(/\s+/g, ' ')));
}

it.each(['vehicles/1', 'bookings/1'])('adds a note to %s', async (about) => {
  await pages.open(`#/${about}`, `[data-notes="${about}"] textarea`);
  await write('The spare key\nis in the depot.');
  expect(written).toMatchObject([{ text: 'The spare key\nis in the depot.' }]);
  expect(field().value).toBe('');
  expect(pages.errors).toEqual([]);
});

it('shows what was stored although the answer was lost, and keeps what was typed', async () => {
  await pages.open('#/vehicles/1', '[data-notes] textarea');
  isRead = false;
  await write('Scratched.');
  expect(field().value).toBe('Scratched.');
  expect(pages.texts('[data-notes] [role="alert"]')).toHaveLength(1);
});

it('keeps what was typed for a person who comes back', async () => {
  await pages.open('#/vehicles/1', '[data-notes] textarea');
  field().value = 'The spare key';
  field().dispatchEvent(new Event('input', { bubbles: true }));
  await tick();
  await pages.open('#/bookings/1', '[data-notes="bookings/1"] textarea');
  expect(field().value).toBe('');
  await pages.open('#/vehicles/1', '[data-notes="vehicles/1"] textarea');
  expect(field().value).toBe('The spare key');
  await write('The spare key');
  expect(field().value).toBe('');
  await pages.until(() => !sessionStorage.getItem('note zoe vehicles/1'));
});

it('gives the focus back to its button', async () => {
  await pages.open('#/vehicles/1', '[data-notes] textarea');
  const button = document.querySelector<HTMLButtonElement>('[data-notes] form button')!;
  button.focus();
  await write('Scratched.');
  await pages.until(() => !button.disabled && document.activeElement === button);
});

it('has nothing to add again where the page was left before the answer', async () => {
  await pages.open('#/vehicles/1', '[data-notes] textarea');
  field().value = 'Scratched.';
  field().dispatchEvent(new Event('input', { bubbles: true }));
  await tick();
  let answer = () => {};
  answered = new Promise((resolve) => (answer = resolve));
  field().form!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.open('#/bookings/1', '[data-notes="bookings/1"] textarea');
  answer();
  await pages.until(() => !sessionStorage.getItem('note zoe vehicles/1'));
  await pages.open('#/vehicles/1', '[data-notes="vehicles/1"] li');
  expect(field().value).toBe('');
});

it('goes on where the browser has no room to keep what is typed', async () => {
  await pages.open('#/vehicles/1', '[data-notes] textarea');
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new Error('QuotaExceededError');
  });
  await write('Scratched.');
  document.querySelector<HTMLSelectElement>('header select')!.dispatchEvent(new Event('change', { bubbles: true }));
  vi.restoreAllMocks();
  expect(written).toMatchObject([{ text: 'Scratched.' }]);
  expect(pages.errors).toEqual([]);
});

it('has no field for those who may only look', async () => {
  session.me = { ...session.me!, level: 'viewer' };
  await pages.open('#/vehicles/1', '[data-notes]');
  expect(field()).toBeNull();
});
