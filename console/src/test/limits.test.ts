// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { fleet } from '../state/fleet.svelte';
import { selection } from '../state/selection.svelte';
import { booking, command, doubled, openConsole, summary, type Answers, type Pages } from './service';

vi.mock('../state/limits', () => ({ rowsShown: 25 })); // 500 rows are slow without a browser

let pages: Pages;
const open = async (answers: Answers) => {
  localStorage.setItem('map', 'hidden');
  pages = await openConsole({ ...doubled, halts: [], ...answers });
  await pages.open('#/', 'tr[data-vehicle]');
};
beforeEach(() => selection.clear());
afterEach(() => {
  pages.close();
  location.hash = '';
  fleet.vehicles.clear();
  fleet.more = false;
  fleet.alarms = [];
});

const many = (n: number, change = {}) => Array.from({ length: n }, (_, i) => summary(i + 1, { plate_number: `M-IM ${i + 1}`, ...change }));
/** A page of a list that goes on. */
const goesOn = <Item>(items: Item[]) => Object.assign([...items], { next: 'more' });
const selectAll = async () => {
  document.querySelector<HTMLInputElement>('thead input')?.click();
  await pages.until(() => document.querySelector('.chosen'));
};

it('says that the list has 25 of 37 vehicles, and that all of these are not all', async () => {
  await open({ vehicles: many(37) });
  await pages.until(() => pages.texts('tr[data-vehicle]').length === 25);
  expect(pages.texts('[data-missing]')).toEqual(Array(2).fill('Only 25 of 37 are listed. Search or filter for the others.'));
  await selectAll();
  expect(pages.texts('.chosen')[0]).toMatch(/25 vehicles selected .*not all that match\. Only 25 of 37 are listed\./);
});

it('says so where a filter finds more than was read, and where it sees only what is held', async () => {
  const held = many(20);
  await open({
    vehicles: (path: string) =>
      path.includes('status=booked') ? goesOn(many(25, { status: 'booked' })) : path.includes('status=in_use') ? [] : goesOn(held),
  });
  await pages.until(() => pages.texts('[data-missing]')[0]?.startsWith('Only '));
  await pages.open('#/?energy=low', 'h1');
  await pages.until(() => pages.texts('main').join().includes('low energy is found among 20 of its vehicles only'));
  await pages.open('#/?status=booked', 'h1');
  await pages.until(() => pages.texts('[data-missing]')[0] === 'More than these 25 match: the others are not listed. Search for fewer.');
  await selectAll();
  expect(pages.texts('.chosen')[0]).toMatch(/25 vehicles selected .*not all that match\. More than these 25 match/);
  selection.clear();
  await pages.open('#/?status=in_use', 'h1'); // all that match are known: there are none
  await pages.until(() => pages.texts('[data-missing]').length === 0);
});

it('says that the palette has found more than it shows', async () => {
  await open({ vehicles: many(20) });
  await pages.press('k', { ctrlKey: true });
  const input = document.querySelector<HTMLInputElement>('dialog[open] input');
  if (input) input.value = 'opel';
  input?.dispatchEvent(new Event('input', { bubbles: true }));
  await pages.until(() => pages.texts('dialog[open]')[0]?.includes('12 of 20: type more of what you look for.'));
});

it('says that there are earlier alarms, and commands', async () => {
  await open({ 'vehicles/1/commands': Array.from({ length: 10 }, (_, n) => command(n + 1)) });
  for (let n = 0; n < 25; n++)
    await pages.send('alarm', { vehicle_id: 1, at: '2026-01-02T10:00:00.000Z', alarm: { kind: 'theft', text: null } });
  await pages.until(() => pages.texts('.alarm').length === 4);
  expect(pages.texts('.alarm')[3]).toMatch(/^\d+ earlier alarms are not shown\.$/);
  await pages.open('#/vehicles/1', '.rest .commands li');
  await pages.until(() => pages.texts('.rest').join().includes('These are the newest 10. All commands of this vehicle'));
});

it('finds the vehicle of a filter that is not held', async () => {
  await open({ vehicles: (path: string) => (path.includes('q=') ? [summary(4000, { plate_number: 'B-CD 7' })] : goesOn(many(20))) });
  await pages.open('#/commands', 'input[list]');
  const input = document.querySelector<HTMLInputElement>('input[list]');
  if (input) input.value = 'b-cd 7';
  input?.dispatchEvent(new Event('change', { bubbles: true }));
  await pages.until(() => location.hash.includes('vehicle_id=4000'));
});

const order = async (action: string) => {
  document.querySelector<HTMLButtonElement>(`.chosen [data-action="${action}"]`)?.click();
  await pages.until(() => document.querySelector('dialog[open] .buttons'));
};
const confirm = () => document.querySelector<HTMLButtonElement>('dialog[open] .buttons button:last-child');

it('takes the number of more than 20 vehicles, and says who has them', async () => {
  await open({
    vehicles: many(21),
    bookings: [
      booking(1, { client: 'anna', vehicle: { ...booking(1).vehicle, id: 3, plate_number: 'M-IM 3' } }),
      booking(2, { vehicle: { ...booking(1).vehicle, id: 99 } }),
    ],
  });
  await pages.until(() => pages.texts('tr[data-vehicle]').length === 21);
  await selectAll();
  await order('lock');
  await pages.until(() => pages.texts('[data-holders]')[0] === '1 of them is with a client: M-IM 3 (anna, BK-2026-00001).');
  expect(confirm()?.disabled).toBe(true);
  const number = document.querySelector<HTMLInputElement>('dialog[open] input[name="number"]');
  const type = async (text: string) => {
    if (number) number.value = text;
    number?.dispatchEvent(new Event('input', { bubbles: true }));
    await new Promise((done) => setTimeout(done));
  };
  await type('20');
  expect(confirm()?.disabled).toBe(true);
  number?.form?.dispatchEvent(new SubmitEvent('submit', { bubbles: true, cancelable: true }));
  expect(pages.requests.filter((r) => r.startsWith('POST'))).toEqual([]);
  await type('21');
  expect(confirm()?.disabled).toBe(false);
  confirm()?.click();
  await pages.until(() => pages.requests.includes('POST commands'));
});

it('says that it is not known who has the vehicles', async () => {
  await open({ vehicles: many(2), bookings: null });
  await pages.until(() => pages.texts('tr[data-vehicle]').length === 2);
  await selectAll();
  await order('unlock');
  await pages.until(() => pages.texts('[data-holders]')[0]?.startsWith('It is not known which of them are with a client'));
  expect(document.querySelector('dialog[open] input')).toBeNull();
  expect(confirm()?.disabled).toBe(false);
});

it.each([
  ['a client', [booking(1, { client: 'anna' })], /anna has it, until .* \(BK-2026-00001\)\./],
  ['no client', [], /There is no booking of it now: check who is asking\./],
  ['the service has not said who', () => new Promise(() => {}), /Reading who has it…/],
  ['not known who', null, /It is not known who has it/],
])('says before a car is opened that %s has it', async (_, bookings, words) => {
  await open({ bookings });
  await pages.open('#/vehicles/1', '[data-action="unlock"][aria-disabled="false"]');
  document.querySelector<HTMLButtonElement>('[data-action="unlock"]')?.click();
  await pages.until(() => words.test(pages.texts('dialog[open]')[0] ?? ''));
});

it.each(['start', 'end'])('says whose booking it is before its %s', async (change) => {
  await open({ 'bookings/1': booking(1, { status: change === 'start' ? 'upcoming' : 'active', end_date: '2126-01-01T00:00:00.000Z' }) });
  await pages.open('#/bookings/1', `[data-action="${change}"][aria-disabled="false"]`);
  document.querySelector<HTMLButtonElement>(`[data-action="${change}"]`)?.click();
  await pages.until(() => pages.texts('dialog[open] h2')[0]?.includes('BK-2026-00001 (anna, M-IM 2101)'));
});
