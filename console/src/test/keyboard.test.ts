// @vitest-environment happy-dom
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fleet } from '../state/fleet.svelte';
import { doubled, openConsole, summary, type Pages } from './service';

let pages: Pages;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  pages = await openConsole({ ...doubled, halts: [], bookings: [], 'vehicles/2': null });
  await pages.open('#/', 'tr[data-vehicle]');
});
afterEach(() => pages.close());

const dialog = () => document.querySelector<HTMLDialogElement>('dialog[open]');
const options = () => pages.texts('dialog[open] [role="option"]');

async function find(query: string) {
  if (!dialog()) await pages.press('k', { ctrlKey: true });
  const input = document.querySelector<HTMLInputElement>('dialog[open] input');
  if (!input) throw new Error('there is no palette');
  input.focus();
  input.value = query;
  input.dispatchEvent(new Event('input', { bubbles: true }));
  await tick();
}

it('shows which of the vehicles of one plate it means', async () => {
  await find('2101');
  expect(options()).toEqual([1, 2, 10].map((id) => `M-IM 2101 · Opel Corsa (#${id})`));
  await find('unlock 2101');
  expect(options().slice(0, 3)).toEqual([1, 2, 10].map((id) => `Unlock: M-IM 2101 (#${id})`));
  expect(pages.texts('[data-failed]')).toEqual([]);
});

it('does not do what was found after the person has looked', async () => {
  fleet.vehicles.set(4, summary(4, { plate_number: 'B-CD 7', unit: null }));
  await find('b-cd');
  expect(options()).toEqual(['B-CD 7 · Opel Corsa', ...options().slice(1)]);
  fleet.vehicles.set(3, summary(3, { plate_number: 'B-CD', unit: null })); // it fits better, and comes first
  const pressed = pages.press('Enter');
  await pressed;
  await pages.until(() => location.hash === '#/vehicles/4');
});

it('keeps what is chosen while others are found', async () => {
  fleet.vehicles.set(4, summary(4, { plate_number: 'B-CD 7', unit: null }));
  await find('b-cd');
  fleet.vehicles.set(3, summary(3, { plate_number: 'B-CD', unit: null }));
  await pages.until(() => options().some((text) => text.startsWith('B-CD ·')));
  expect(pages.texts('[aria-selected="true"]')).toEqual(['B-CD 7 · Opel Corsa']);
  await pages.press('Enter');
  await pages.until(() => location.hash === '#/vehicles/4');
});

it.each(['Enter', ' '])('a held %j neither chooses nor confirms', async (key) => {
  await find('unlock 2101');
  expect(await pages.press('Enter', { repeat: true })).toBe(false);
  expect(dialog()?.querySelector('[role="option"]')).not.toBeNull();
  await pages.press('Enter');
  await pages.until(() => pages.texts('dialog[open] h2').includes('Unlock: M-IM 2101?'));
  const button = [...document.querySelectorAll<HTMLButtonElement>('dialog[open] button')].find((b) => b.textContent?.trim() === 'Unlock');
  button?.focus();
  expect(await pages.press(key, { repeat: true })).toBe(false); // so that the browser does not click
  expect(await pages.press(key)).toBe(true);
  expect(pages.requests.filter((r) => r.startsWith('POST'))).toEqual([]);
});

it.each(['h', '?', 'k'])('a held %s opens no dialog', async (key) => {
  await pages.press(key, { repeat: true, ctrlKey: key === 'k' });
  expect(dialog()).toBeNull();
  await pages.press(key, { ctrlKey: key === 'k' });
  expect(dialog()).not.toBeNull();
});

it('a held space is typed into a text', async () => {
  await find('lock');
  expect(await pages.press(' ', { repeat: true })).toBe(true);
});
