// @vitest-environment happy-dom
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { doubled, openConsole, uuid, type Pages } from './service';

const missing = vi.hoisted(() => ({ activity: true }));
vi.mock('../pages/Activity.svelte', async (original) => {
  if (missing.activity) throw new Error('Failed to fetch dynamically imported module');
  return await original();
});

let pages: Pages;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  pages = await openConsole({ ...doubled, halts: [] });
  await pages.open('#/', 'tr[data-vehicle]');
});
afterEach(() => pages.close());

it.each([
  ['#/vehicles/1', 'M-IM 2101'],
  ['#/vehicles/1?span=day', 'M-IM 2101'],
  [`#/bulk/${uuid(9)}`, 'Lock'],
  [`#/commands/${uuid(1).toUpperCase()}`, 'Lock'],
  ['#/commands', 'Commands'],
  ['#/bulk', 'Orders to many vehicles'],
  ['#/bookings/1', 'BK-2026-00001'],
  ['#/bookings', 'Bookings'],
  ['#/charges?state=paid', 'Charges'],
  ['#/client?agency_id=1&client=anna', 'anna'],
  ['#/agencies', 'Agencies'],
  ['#/units', 'Units'],
  ['#/tour', 'Tour'],
  ['#/', 'Fleet'],
  ['#', 'Attention'],
])('shows the page at %s', async (hash, title) => {
  await pages.open(hash, 'main h1');
  await pages.until(() => document.title.includes(title));
});

it.each(['#/vehicle/1', '#/vehicles/x', '#/vehicles/1/2', '#/commands/1', '#/units/', '#x', '#/constructor'])(
  'says that there is no page at %s, and leads back',
  async (hash) => {
    await pages.open(hash, 'main .alone');
    expect(pages.texts('main h1')).toEqual(['There is no page at this address']);
    expect(document.title).toBe('There is no page at this address · Motorpool');
    await pages.until(() => document.activeElement === document.querySelector('main'));
    document.querySelector<HTMLAnchorElement>('main a')!.click();
    await pages.open('#/', 'tr[data-vehicle]');
  },
);

it('shows a page that was loaded before without a moment in which there is none', async () => {
  await pages.open('#/units', 'tr[data-unit]');
  location.hash = '#/';
  dispatchEvent(new Event('hashchange'));
  await tick();
  expect(pages.texts('main h1')).toEqual(['Fleet']);
});

it('says that a page cannot be loaded, and loads the console again', async () => {
  const reload = vi.spyOn(location, 'reload').mockImplementation(() => {});
  await pages.open('#/activity', 'main .alone');
  expect(pages.texts('main h1')).toEqual(['This page could not be loaded']);
  expect(document.title).toBe('This page could not be loaded · Motorpool');
  expect(pages.texts('.live')).toEqual(['Live']);
  document.querySelector<HTMLButtonElement>('main button')!.click();
  expect(reload).toHaveBeenCalledOnce();

  missing.activity = false;
  await pages.open('#/units', 'tr[data-unit]');
  await pages.open('#/activity', 'main table');
});
