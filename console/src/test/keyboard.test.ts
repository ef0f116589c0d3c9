// @vitest-environment happy-dom
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { VehicleSummary } from '../api/client';
import { vehicles } from '../state/vehicles.svelte';
import { booking, doubled, openConsole, summary, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  answers = { ...doubled, halts: [], bookings: [], 'vehicles/2': null };
  pages = await openConsole(answers);
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

it('finds the alert limits of an agency, and says what else can be found', async () => {
  await find('threshold');
  expect(options()).toEqual(['Alert limits']);
  await find('Meier');
  expect(pages.texts('dialog[open] [role="status"]')[0]).toContain('a client’s name or ID, a booking’s number');
  await find('alert lim');
  await pages.press('Enter');
  await pages.until(() => pages.texts('[data-rule]').length === 2 && location.hash === '#/agencies?limits=1');
});

it('finds a booking by its reference, or by the number in it, and opens it', async () => {
  const year = new Date().getFullYear();
  answers.bookings = [];
  answers[`bookings?reference=BK-${year}-200004`] = [booking(4, { reference: `BK-${year}-200004` })];
  answers[`bookings?reference=BK-${year - 1}-200004`] = [];
  for (const query of ['200004', `bk-${year}-200004`, `${year}-200004`]) {
    await pages.open('#/', 'tr[data-vehicle]');
    await find(query);
    await pages.until(() => options()[0] === `Booking BK-${year}-200004: M-IM 2101, anna`);
    await new Promise((done) => setTimeout(done, 300));
    await pages.press('Enter');
    await pages.until(() => location.hash === '#/bookings/4');
  }
  expect(pages.requests.filter((r) => r.includes('reference=')).length).toBe(4); // the year before only where none is named
  await find('21010');
  await new Promise((done) => setTimeout(done, 300));
  expect(options()).toEqual([]);
});

it('has keys of one letter or sign, which can be turned off', async () => {
  const helping = async (of: () => unknown) => {
    await of();
    await pages.until(() => dialog()?.querySelector('kbd'));
    dialog()!.querySelector<HTMLElement>('input[type="checkbox"]')!.click();
    dialog()!.close();
    await pages.until(() => !dialog());
  };
  await helping(() => pages.press('?'));
  for (const key of ['q', '?', 'h', 'x', '/']) expect(await pages.press(key)).toBe(true);
  expect([location.hash, dialog()]).toEqual(['#/', null]);
  await pages.press('ArrowDown');
  expect(document.activeElement?.closest('tr[data-vehicle]')).not.toBeNull();
  await find('2101');
  dialog()!.close();
  await helping(() => document.querySelector<HTMLElement>('header [aria-keyshortcuts="?"]')!.click());
  await pages.press('q');
  expect(location.hash).toBe('#/attention');
});

it('finds clients by a part of their name', async () => {
  answers.clients = [{ agency_id: 1, client: 'anna' }];
  await find('ann');
  await pages.until(() => options().includes('Client: anna'));
  expect(pages.requests).toContain('GET clients?q=ann');
  await pages.press('Enter');
  await pages.until(() => location.hash === '#/client?agency_id=1&client=anna');

  answers.bookings = [];
  await pages.open('#/bookings?client=ann', 'main a[href="#/client?agency_id=1&client=anna"]');
});

/** Adds a vehicle that nothing can be done to. */
async function add(id: number, plate: string) {
  answers.vehicles = [...(answers.vehicles as VehicleSummary[]), summary(id, { plate_number: plate, unit: null })];
  await vehicles.read();
}

it('does not do what was found after the person has looked', async () => {
  await add(4, 'B-CD 7');
  await find('b-cd');
  await pages.until(() => options()[0] === 'B-CD 7 · Opel Corsa');
  await add(3, 'B-CD'); // it fits better, and comes first
  const pressed = pages.press('Enter');
  await pressed;
  await pages.until(() => location.hash === '#/vehicles/4');
});

it('keeps what is chosen while others are found', async () => {
  await add(4, 'B-CD 7');
  await find('b-cd');
  await pages.until(() => options()[0] === 'B-CD 7 · Opel Corsa');
  await add(3, 'B-CD');
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

it('goes on from the page where the focused button is gone', async () => {
  document.querySelector<HTMLInputElement>('tr[data-vehicle] input[type="checkbox"]')!.click();
  await pages.until(() => document.querySelector('.chosen'));
  const none = [...document.querySelectorAll<HTMLElement>('.chosen button')].find((button) => button.textContent === 'Select none')!;
  none.focus();
  none.click();
  await pages.until(() => !none.isConnected && document.activeElement === document.querySelector('main'));
});

it('leads from the filters of a phone back to their button', async () => {
  const toggle = document.querySelector<HTMLElement>('button.toggle')!;
  toggle.click();
  await tick();
  document.querySelector<HTMLElement>('.filters select')!.focus();
  await pages.press('Escape');
  expect([document.activeElement, toggle.getAttribute('aria-expanded')]).toEqual([toggle, 'false']);
});

it('leaves the keys of a map to it', async () => {
  const map = document.createElement('canvas');
  map.tabIndex = 0;
  map.onkeydown = (event) => event.preventDefault();
  document.querySelector('main')!.append(map);
  map.focus();
  await pages.press('ArrowDown');
  expect(document.activeElement).toBe(map);
});
