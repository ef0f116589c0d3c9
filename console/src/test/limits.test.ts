// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { selection } from '../state/selection.svelte';
import { at, booking, command, doubled, openConsole, summary, type Answers, type Pages } from './service';

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
});

const many = (n: number, change = {}) => Array.from({ length: n }, (_, i) => summary(i + 1, { plate_number: `M-IM ${i + 1}`, ...change }));
const selectAll = async () => {
  document.querySelector<HTMLInputElement>('thead input')?.click();
  await pages.until(() => document.querySelector('.chosen'));
};

const listed = () => pages.texts('tr[data-vehicle] .plate');
const count = () => pages.texts('[data-count]')[0];

it('lists, counts and selects all of 2,500 vehicles, of which few are in the document', async () => {
  const all = many(2500).map((v) => ({ ...v, status: v.id % 4 ? ('available' as const) : ('booked' as const) }));
  await open({ vehicles: all });
  expect(count()).toBe('2500 / 2500');
  expect(document.querySelector('table')?.getAttribute('aria-rowcount')).toBe('2501');
  expect(listed().length).toBeLessThan(100);
  await pages.open('#/?status=booked&q=UNIT-9', 'h1');
  const match = all.filter((v) => v.status === 'booked' && v.unit?.includes('unit-9'));
  await pages.until(() => count() === `${match.length} / 2500`);
  await selectAll();
  expect([...selection.ids]).toEqual(match.map((v) => v.id));
  expect(document.querySelector('[data-all]')).toBeNull();
});

it('selects all that match where a few are selected', async () => {
  await open({ vehicles: many(60) });
  selection.set([7], true);
  await pages.open('#/?q=unit-1', 'h1');
  await pages.until(() => pages.texts('[data-all]')[0] === 'Select all 11 that match');
  document.querySelector<HTMLButtonElement>('[data-all]')?.click();
  await pages.until(() => selection.ids.size === 12);
  expect(pages.texts('.chosen')[0]).toMatch(/12 vehicles selected, 1 of them not shown here: M-IM 7/);
});

it('keeps the selection while a vehicle is looked at, and no longer', async () => {
  await open({ vehicles: many(2) });
  selection.set([1], true);
  await pages.open('#/vehicles/1', '[data-action="lock"]');
  await pages.open('#/', 'tr[data-vehicle]');
  expect([...selection.ids]).toEqual([1]);
  await pages.open('#/bookings', '[data-action="new-booking"]');
  expect([...selection.ids]).toEqual([]);
});

it('sorts by each column, in the address', async () => {
  await open({
    vehicles: many(12).map((v) => ({ ...v, telemetry: { ...v.telemetry, battery_level_percent: v.id === 3 ? null : 100 - v.id } })),
  });
  const click = (name: string) => document.querySelector<HTMLButtonElement>(`thead .${name} button`)?.click();
  const ids = () => pages.texts('tr[data-vehicle] td.id').map(Number);
  const order = (name: string) => document.querySelector(`thead .${name}`)?.getAttribute('aria-sort');
  click('plate');
  await pages.until(() => order('plate') === 'ascending' && order('id') === null);
  expect([location.hash, ids()[1]]).toEqual(['#/?sort=plate', 2]); // not M-IM 10
  click('plate');
  await pages.until(() => location.hash === '#/?sort=-plate' && ids()[0] === 12);
  click('energy');
  await pages.until(() => ids().join() === '12,11,10,9,8,7,6,5,4,2,1,3'); // what is not known comes last
  expect(order('energy')).toBe('ascending');
  click('energy');
  await pages.until(() => ids().join() === '1,2,4,5,6,7,8,9,10,11,12,3');
  expect(order('energy')).toBe('descending');
  click('rented');
  await pages.until(() => ids().join() === '2,1,3,4,5,6,7,8,9,10,11,12'); // hours of the two that are in service
  expect(pages.texts('tr[data-vehicle] td.rented').slice(0, 3)).toEqual(['0.0 h', '12.5 h', '–']);
});

it('saves all rows that match, in their order, as a file', async () => {
  const [files, names]: [Blob[], string[]] = [[], []];
  vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => `blob:${files.push(blob as Blob)}`);
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
    names.push(this.download);
  });
  await open({ vehicles: many(300).map((v) => (v.id === 200 ? { ...v, plate_number: '=1+1', unit: null } : v)) });
  await pages.open('#/?sort=-id&q=M-IM', 'h1');
  await pages.until(() => count() === '299 / 300');
  document.querySelector<HTMLElement>('[data-export]')!.click();
  await pages.open('#/?q=1%2B1', 'h1');
  await pages.until(() => count() === '1 / 300');
  document.querySelector<HTMLElement>('[data-export]')!.click();
  vi.restoreAllMocks();
  const [all, one] = await Promise.all(files.map(async (file) => (await file.text()).trim().split('\r\n')));
  expect(names).toEqual(['vehicles.csv', 'vehicles.csv']);
  expect([all!.length, all![1]!.split(',').slice(0, 2)]).toEqual([300, ['300', 'M-IM 300']]);
  const stored = new Date(at(0)).toISOString();
  expect(one!.slice(1)).toEqual([
    `200,'=1+1,Opel Corsa,,1,available,electric,online,${stored},true,${stored},80,${stored},false,,,,`,
  ]);
});

it('prints all rows that match', async () => {
  await open({ vehicles: many(123) });
  await pages.until(() => count() === '123 / 123');
  const seen = listed().length;
  dispatchEvent(new Event('beforeprint'));
  expect(listed()).toHaveLength(123);
  dispatchEvent(new Event('afterprint'));
  await pages.until(() => listed().length === seen);
  await pages.open('#/?q=unit-1', 'h1');
  await pages.until(() => count() === '35 / 123');
  dispatchEvent(new Event('beforeprint'));
  expect(listed()).toHaveLength(35);
  expect(pages.texts('table')[0]).not.toContain('more');
  expect(pages.requests.filter((r) => r.startsWith('GET vehicles?ids=') && r.split(',').length > 60)).toEqual([]);
});

it('leads the keyboard through rows that are not in the document yet', async () => {
  await open({ vehicles: many(500) });
  await pages.until(() => count() === '500 / 500');
  const focused = () => document.activeElement?.closest('tr')?.getAttribute('aria-rowindex');
  for (let n = 0; n < 3; n++) await pages.press('j');
  await pages.until(() => focused() === '4');
  await pages.press('End');
  await pages.until(() => focused() === '501');
  await pages.press('k');
  await pages.until(() => focused() === '500');
  expect(listed().length).toBeLessThan(60);
});

it('says that the palette has found more than it shows', async () => {
  await open({ vehicles: many(20) });
  await pages.press('k', { ctrlKey: true });
  const input = document.querySelector<HTMLInputElement>('dialog[open] input');
  if (input) input.value = 'opel';
  input?.dispatchEvent(new Event('input', { bubbles: true }));
  await pages.until(() => pages.texts('dialog[open]')[0]?.includes('12 of 20: type more of what you look for.'));
});

it('says that there are earlier commands', async () => {
  await open({ 'vehicles/1/commands': Array.from({ length: 10 }, (_, n) => command(n + 1)) });
  await pages.open('#/vehicles/1', '.rest .commands li');
  await pages.until(() => pages.texts('.rest').join().includes('These are the newest 10.'));
});

it('leads from a vehicle to its bookings, its commands and what was done with it', async () => {
  await open({});
  await pages.open('#/vehicles/1', 'main .bar h1 ~ span a');
  const links = [...document.querySelectorAll('main .bar h1 ~ span a')].map((a) => a.getAttribute('href'));
  expect(links).toEqual(['bookings', 'commands', 'activity'].map((page) => `#/${page}?vehicle_id=1`));
});

const order = async (action: string) => {
  document.querySelector<HTMLButtonElement>(`.chosen [data-action="${action}"]`)?.click();
  await pages.until(() => document.querySelector('dialog[open] .buttons'));
};
const confirm = () => document.querySelector<HTMLButtonElement>('dialog[open] .buttons button:last-child');

it('takes the number of more than 20 vehicles, and says of all which are in use, and why which are refused', async () => {
  const all = many(300).map((v) => ({ ...v, status: v.id === 3 || v.id > 290 ? ('in_use' as const) : v.status }));
  all[250] = { ...all[250]!, connectivity: { status: 'offline', last_seen: null } };
  await open({
    vehicles: all,
    bookings: (path: string) =>
      path.includes('vehicle_id=3')
        ? [booking(1, { client: 'anna', vehicle: { ...booking(1).vehicle, id: 3, plate_number: 'M-IM 3' } })]
        : [],
  });
  await pages.until(() => count() === '300 / 300');
  await pages.send('status', { vehicle_id: 299, at: new Date().toISOString(), telemetry: { speed_kmh: 50 } });
  await selectAll();
  await order('unlock');
  const holders = '11 of them are in use: M-IM 3 (anna, BK-2026-00001), M-IM 291, M-IM 292, M-IM 293, M-IM 294 ….';
  await pages.until(() => pages.texts('[data-holders]')[0] === holders);
  expect(pages.texts('dialog[open] li')).toEqual([
    expect.stringMatching(/^1 × .*offline/i),
    '1 × The vehicle is driving. This works only while it stands.',
  ]);
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
  await type('300');
  expect(confirm()?.disabled).toBe(false);
  confirm()?.click();
  await pages.until(() => pages.requests.includes('POST commands'));
});

it('offers what a selected vehicle has, and says how many have it not', async () => {
  const scooter = { capabilities: { commands: ['lock' as const, 'open-top-case' as const] } };
  await open({ vehicles: many(3).map((v) => (v.id === 2 ? { ...v, ...scooter } : v)) });
  const isOff = (action: string) => document.querySelector(`.chosen [data-action="${action}"]`)?.getAttribute('aria-disabled') === 'true';
  selection.set([1, 3], true);
  await pages.until(() => isOff('open-top-case') && !isOff('lock'));
  document.querySelector<HTMLElement>('.chosen [data-action="open-top-case"]')!.click();
  await new Promise((done) => setTimeout(done));
  expect(document.querySelector('dialog[open]')).toBeNull();
  selection.set([2], true);
  await pages.until(() => !isOff('open-top-case') && isOff('enable-driving'));
  await order('open-top-case');
  expect(pages.texts('dialog[open] li')).toEqual(['2 × The unit does not offer this.']);
  const read = pages.requests.filter((r) => r.startsWith('GET vehicles?ids=') && r.includes('1,3'));
  expect(read.length).toBeGreaterThan(0);
});

it('says that it is not known who has the vehicles', async () => {
  await open({ vehicles: many(2, { status: 'in_use' }), bookings: null });
  await pages.until(() => pages.texts('tr[data-vehicle]').length === 2);
  await selectAll();
  await order('unlock');
  await pages.until(() => pages.texts('[data-holders]')[0]?.includes('M-IM 1, M-IM 2. It is not known who has them'));
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
