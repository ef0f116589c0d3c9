// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fleet } from '../state/fleet.svelte';
import { booking, doubled, openConsole, summary, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  answers = { ...doubled, halts: [] };
  pages = await openConsole(answers);
  await pages.open('#/', 'tr[data-vehicle]');
  await pages.until(() => pages.texts('.live').includes('Live'));
});
afterEach(() => pages.close());

const broken = { toString: () => { throw new Error('It is broken.'); } } as unknown as string;

it('an error of a page says that what is seen may be old, and leaves the rest alone', async () => {
  fleet.vehicles.set(3, summary(3, { brand: broken }));
  await pages.until(() => pages.texts('[data-failed]').length === 1);
  expect(pages.texts('[data-failed]')[0]).toMatch(/may be old.*It is broken\./);
  expect(pages.texts('.live')).toEqual(['Not live']);
  expect(document.body.hasAttribute('data-stale')).toBe(true);
  await pages.send('alarm', { vehicle_id: 1, at: '2026-01-02T10:00:00.000Z', alarm: { kind: 'theft', text: 'gone' } });
  await pages.until(() => pages.texts('.alarm').length === 1);

  fleet.vehicles.delete(3);
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
  fleet.alarms = [{ serial: -1, vehicle: 1, at: '', kind: broken, text: null }];
  await pages.until(() => pages.texts('[data-failed]').length === 1);
  expect(pages.texts('.live')).toEqual(['Not live']);
  expect(document.querySelector('tr[data-vehicle]')).not.toBeNull();
  await pages.open('#/units', 'tr[data-unit]');
  fleet.alarms = [];
});

it('an error of a page ends with the page', async () => {
  fleet.vehicles.set(3, summary(3, { brand: broken }));
  await pages.until(() => pages.texts('[data-failed]').length === 1);
  await pages.open('#/units', 'tr[data-unit]');
  expect(pages.texts('[data-failed]')).toEqual([]);
  expect(pages.texts('.live')).toEqual(['Live']);
  fleet.vehicles.delete(3);
});

it('an event that cannot be handled ends "Live" until everything was read again', async () => {
  const { vehicles } = answers;
  answers.vehicles = null;
  await pages.send('command', {});
  await pages.until(() => pages.texts('.live').includes('Not live'));
  expect(pages.texts('[role="alert"]').join()).toMatch(/could not handle an event: what you see may be old/);
  answers.vehicles = vehicles;
  await pages.until(() => pages.texts('.live').includes('Live'));
  expect(pages.texts('[role="alert"]').join()).not.toMatch(/may be old/);
});
