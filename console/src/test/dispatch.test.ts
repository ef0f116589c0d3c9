// @vitest-environment happy-dom
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { serverTime } from '../api/servertime';
import { halts } from '../state/halts.svelte';
import { route } from '../state/route.svelte';
import { session } from '../state/session.svelte';
import { stream } from '../state/stream.svelte';
import { selection } from '../state/selection.svelte';
import { vehicles } from '../state/vehicles.svelte';
import { wanted } from '../state/wanted.svelte';
import { en } from '../texts/en';
import { at, booking, command, doubled, openConsole, summary, vehicle, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
const halt = {
  agency_id: null,
  reason: 'Doors open by themselves',
  by: 'eva',
  since: at(0),
  effect: { vehicles: 120, withheld: 3, in_flight: 1 },
};

beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  sessionStorage.clear();
  answers = { ...doubled, halts: [], agencies: [], vehicles: [summary(1), summary(2)] };
  pages = await openConsole(answers);
  await pages.open('#/', 'tr[data-vehicle]');
});
afterEach(() => {
  pages.close();
  selection.clear();
});

const ago = (seconds: number) => new Date(Date.now() - 1000 * seconds).toISOString();
function type(selector: string, value: string) {
  const field = document.querySelector<HTMLInputElement>(selector)!;
  field.value = value;
  field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', { bubbles: true }));
}
const submit = () =>
  document.querySelector<HTMLFormElement>('dialog[open] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
const click = (selector: string) => document.querySelector<HTMLElement>(selector)!.click();

it('shows lock and energy with their own ages, in the list and in a bulk', async () => {
  const old = summary(1);
  answers.vehicles = [
    summary(1, {
      connectivity: { status: 'online', last_seen: ago(1) }, telemetry: { ...old.telemetry, is_locked: false },
      reported_at: { ...old.reported_at, is_locked: ago(100), battery_level_percent: ago(3 * 3600) },
    }),
  ];
  await pages.send('reset', {});
  await pages.until(() => pages.texts('tr[data-vehicle="1"] .doors')[0] === 'unlocked 2 min ago');
  expect(pages.texts('tr[data-vehicle="1"] .energy')).toEqual(['80 % 3 h ago']);
  expect(document.querySelector('tr[data-vehicle="1"] .energy [data-fresh]')?.getAttribute('data-fresh')).toBe('old');
  await pages.send('status', { vehicle_id: 1, at: ago(0), telemetry: { speed_kmh: 0 } });
  expect(pages.texts('tr[data-vehicle="1"] .doors')).toEqual(['unlocked 2 min ago']);
  await pages.send('status', { vehicle_id: 1, at: ago(0), telemetry: { is_locked: true } });
  await pages.until(() => pages.texts('tr[data-vehicle="1"] .doors')[0] === 'locked now');
  await pages.open('#/bulk/00000000-0000-4000-8000-000000000009', 'td.now');
  expect(pages.texts('td.now')[0]).toMatch(/^locked (now|\d s ago)$/);
});

it('offers each agency to halt, whatever vehicles are held, and begins fresh each time', async () => {
  const page = (from: number) =>
    Array.from({ length: 40 }, (_, n) => ({ id: from - n, code: 'A', name: `Agency ${from - n}`, vehicles: 1, stations: 0 }));
  answers.agencies = (path: string) => (path.includes('cursor') ? page(40) : Object.assign(page(80), { next: 'more' }));
  await pages.press('h');
  await pages.until(() => document.querySelectorAll('dialog[open] option').length === 81);
  expect(pages.texts('dialog[open] option').slice(0, 2)).toEqual(['all agencies', 'agency 1: Agency 1 (1 vehicle)']);
  type('dialog[open] select', '7');
  type('dialog[open] input', 'typo');
  click('dialog[open] button[type=button]');
  await tick();
  await pages.press('h');
  await pages.until(() => document.querySelectorAll('dialog[open] option').length === 81);
  expect([
    document.querySelector<HTMLSelectElement>('dialog[open] select')!.value,
    document.querySelector<HTMLInputElement>('dialog[open] input')!.value,
  ]).toEqual(['', '']);
});

it.each([
  ['#/', 'agency'],
  ['#/units', 'agency_id'],
  ['#/bookings', 'agency_id'],
  ['#/charges', 'agency_id'],
])('filters %s by each agency, whatever vehicles are held', async (hash, name) => {
  answers.agencies = [40, 7, 1].map((id) => ({ id, code: 'A', name: `Agency ${id}`, vehicles: 1, stations: 0 }));
  await pages.open(hash, 'h1');
  stream.readings++;
  await pages.open(hash, '[aria-label=Agency] option + option');
  expect(pages.texts('[aria-label=Agency] option')).toEqual([
    'Agency: all',
    'agency 1: Agency 1',
    'agency 7: Agency 7',
    'agency 40: Agency 40',
  ]);
  type('[aria-label=Agency]', '7');
  await pages.until(() => location.hash === `${hash}?${name}=7`);
  const path = { '#/': 'fleet', '#/units': 'units?', '#/bookings': 'bookings?', '#/charges': 'charges?' }[hash] ?? '';
  await pages.until(() => pages.requests.some((r) => r.startsWith(`GET ${path}`) && (hash === '#/' || r.includes('agency_id=7'))));
  if (hash === '#/') await pages.until(() => pages.texts('tr[data-vehicle]').length === 0); // both are of agency 1
});

it('names the agency whose commands are halted', async () => {
  answers.agencies = [{ id: 7, code: 'A', name: 'Isar Mobility', vehicles: 1, stations: 0 }];
  halts.all = [{ ...halt, agency_id: 7, effect: { vehicles: 1, withheld: 0, in_flight: 0 } }];
  await pages.until(() => /\(agency 7: Isar Mobility\): .* 1 vehicle;/.test(pages.texts('.halt')[0] ?? ''));
});

it('reads on in the commands of the last day, and shows since when where a time is chosen', async () => {
  const list = Array.from({ length: 3 }, (_, n) => command(n + 1, { requested_at: ago(n) }));
  const next = [command(9, { requested_at: ago(60) })];
  answers.commands = (path: string) => (path.includes('cursor=') ? next : Object.assign(list, { next: 'more' }));
  await pages.open('#/commands?from=-24h', 'tr[data-command]');
  await pages.until(() => [...document.querySelectorAll('button')].some((b) => b.textContent === 'Read more'));
  await new Promise((done) => setTimeout(done, 5)); // the last day begins later
  [...document.querySelectorAll('button')].find((b) => b.textContent === 'Read more')!.click();
  await pages.until(() => pages.texts('tr[data-command]').length === 4);

  [...document.querySelectorAll('button')].find((b) => b.textContent === 'from … to')!.click();
  await tick();
  const from = document.querySelector<HTMLInputElement>('input[type="datetime-local"]')!.value;
  expect(Math.abs(Date.parse(from) - Date.now() + 86_400_000)).toBeLessThan(120_000);
});

it('asks which vehicle is meant where several have one plate', async () => {
  await pages.open('#/commands', 'input[list]');
  const input = document.querySelector<HTMLInputElement>('input[list]')!;
  const enter = async (text: string) => {
    input.value = text;
    input.dispatchEvent(new Event('change', { bubbles: true }));
    await new Promise((done) => setTimeout(done));
  };
  await enter('mim 2101');
  expect(input.validationMessage).toBe('Several vehicles fit. Enter one of: M-IM 2101 (#1), M-IM 2101 (#2)');
  expect(location.hash).toBe('#/commands');
  input.dispatchEvent(new Event('input', { bubbles: true }));
  await enter('M-IM 2101 (#2)');
  expect([input.validationMessage, location.hash]).toEqual(['', '#/commands?vehicle_id=2']);
});

it('finds the charges of a booking by its reference', async () => {
  answers['bookings?reference='] = (path: string) => (path.endsWith('=bk-2026-00001') ? [booking(1)] : []);
  await pages.open('#/charges', '[data-charge]');
  const input = [...document.querySelectorAll('label.filter')].find((l) => l.textContent?.trim() === 'Booking')!.querySelector('input')!;
  const enter = async (text: string) => {
    input.value = text;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
    await new Promise((done) => setTimeout(done));
  };
  await enter('BK-2026-09999');
  expect([input.validationMessage, location.hash]).toEqual(['No booking has this reference.', '#/charges']);
  await enter('bk-2026-00001');
  expect([input.validationMessage, location.hash]).toEqual(['', '#/charges?booking_id=1']);
  await pages.until(
    () => input.value === 'BK-2026-00001' && pages.requests.some((r) => r.startsWith('GET charges?') && r.includes('booking_id=1')),
  );
});

it('shows what was paid last month', async () => {
  await pages.open('#/charges', '[data-charge]');
  const month = [...document.querySelectorAll<HTMLElement>('.filter button')].find((b) => b.textContent === 'last month')!;
  month.click();
  await pages.until(() => month.getAttribute('aria-pressed') === 'true');
  const [now, { parameters }] = [new Date(serverTime.now()), route];
  expect([parameters.get('from'), parameters.get('to')].map((at) => Date.parse(at!))).toEqual(
    [1, 0].map((before) => new Date(now.getFullYear(), now.getMonth() - before, 1).getTime()),
  );
  const by = [...document.querySelectorAll<HTMLSelectElement>('label.filter select')].find((s) => s.options[1]?.value === 'paid_at')!;
  by.value = 'paid_at';
  by.dispatchEvent(new Event('change', { bubbles: true }));
  await pages.until(() => pages.requests.some((r) => /^GET charges\?.*from=.*to=.*by=paid_at/.test(r)));
});

it('filters no other page by a booking that was found late', async () => {
  let answer = () => {};
  answers['bookings?reference='] = () => new Promise((resolve) => (answer = () => resolve([booking(1)])));
  await pages.open('#/charges', '[data-charge]');
  const input = [...document.querySelectorAll('label.filter')].find((l) => l.textContent?.trim() === 'Booking')!.querySelector('input')!;
  input.value = 'bk-2026-00001';
  input.dispatchEvent(new Event('change', { bubbles: true }));
  await pages.open('#/activity', 'tbody tr');
  answer();
  await new Promise((done) => setTimeout(done, 50));
  expect(location.hash).toBe('#/activity');
});

it('asks before it resumes: shows who halted, when and what is withheld, and sends why', async () => {
  halts.all = [halt];
  await tick();
  answers.halts = (_: string, init: RequestInit) => (init.method === 'DELETE' ? {} : [halt]);
  click('.halt button');
  await pages.until(() => document.querySelector('dialog[open] form'));
  expect(pages.requests.filter((r) => r.startsWith('DELETE'))).toEqual([]);
  const shown = pages.texts('dialog[open] dd');
  expect(shown[0]).toBe('eva');
  expect(shown[1]).toMatch(/^Fri, .*\b2\b.*11:00:00$/);
  expect(shown.slice(2)).toEqual([
    'Doors open by themselves',
    '120 vehicles; accepted and held back: 3; sent before, and perhaps still executed: 1.',
  ]);
  type('dialog[open] input', 'repaired & tested');
  submit();
  await pages.until(() => pages.requests.some((r) => r.startsWith('DELETE')));
  expect(pages.requests.filter((r) => r.startsWith('DELETE'))).toEqual(['DELETE halts?reason=repaired+%26+tested']);
});

it('shows why what the palette has chosen was refused, also after the page was read', async () => {
  answers['vehicles/1'] = { ...vehicle(1), unit: null };
  wanted.set(1, 'unlock');
  await pages.open('#/vehicles/1', '[data-vehicle="1"]');
  await pages.until(() => document.querySelector('.headlines'));
  const refused = 'Unlock was not requested: This vehicle has no telematics unit.';
  await pages.until(() => pages.texts('.problem').includes(refused));
  for (let n = 0; n < 10; n++) await new Promise((resolve) => setTimeout(resolve, 10)); // the page is read meanwhile
  expect(pages.texts('.problem')).toContain(refused);
});

it('does not ask a vehicle whose unit reports at its own times alone, and says so', async () => {
  answers['vehicles/1'] = { ...vehicle(1), capabilities: { ...vehicle(1).capabilities, refresh: false } };
  await pages.open('#/vehicles/1', '[data-action="refresh"]');
  expect(document.querySelector<HTMLButtonElement>('[data-action="refresh"]')!.disabled).toBe(true);
  expect(pages.texts('#why-refresh')).toEqual([`Ask the vehicle now: ${en.off.refresh}`]);
});

it('says before a bulk which vehicles drive now, as the page of one does', async () => {
  const drives = summary(2);
  answers.vehicles = [
    summary(1),
    { ...drives, telemetry: { ...drives.telemetry, speed_kmh: 50 }, reported_at: { ...drives.reported_at, speed_kmh: ago(1) } },
  ];
  selection.set([1, 2], true);
  await tick();
  click('.chosen [data-action="disable-driving"]');
  await pages.until(() => pages.texts('dialog[open] li').includes(`1 × ${en.off.moving}`));
});

it('says why the unit failed next to the buttons, also to a person who comes back', async () => {
  answers['vehicles/1/commands'] = [
    command(5, { state: 'failed', outcome: 'failed', reason: 'door_lock_fault', requested_at: ago(60), completed_at: ago(55) }),
  ];
  await pages.open('#/vehicles/1', '[data-result] .failed');
  expect(pages.texts('[data-result] [role="status"]')[0]).toMatch(
    /^Lock: tried and failed \S+ \(the door lock does not move: it is jammed or broken\) Look at its state/,
  );
});

it('has the agency that was to be halted again, before agencies are read', async () => {
  sessionStorage.setItem('forms', JSON.stringify({ person: 'zoe', values: { halt: { where: '7', reason: 'fire' } } }));
  pages.close();
  session.me = null;
  answers.agencies = () => new Promise(() => {});
  pages = await openConsole(answers);
  await pages.until(() => document.querySelector('dialog[open] select'));
  expect(document.querySelector<HTMLSelectElement>('dialog[open] select')!.value).toBe('7');
  expect(pages.texts('dialog[open] option')).toContain('agency 7');
});

it('says in a dialog that what is seen may be old', async () => {
  await pages.press('h');
  await pages.until(() => document.querySelector('dialog[open] form'));
  expect(pages.texts('dialog[open]')[0]).not.toMatch(/Not live/);
  stream.lost = { since: Date.now(), why: '' };
  await pages.until(() => /Not live since .* What you see is of that time\./.test(pages.texts('dialog[open]')[0] ?? ''));
  stream.lost = null;
});

it('has what was typed again after the session has ended', async () => {
  answers['bookings/1'] = booking(1);
  await pages.open('#/bookings/1', '[data-action="refund"]');
  selection.set([1, 2], true);
  click('[data-action="refund"]');
  await pages.until(() => document.querySelector('dialog[open] input'));
  const fields = () => [...document.querySelectorAll<HTMLInputElement>('dialog[open] input')];
  fields().forEach((field, n) => {
    field.value = n === 0 ? '12.50' : 'The heating was broken';
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
  const { endSession } = await import('../api/client');
  endSession();
  await pages.until(() => document.querySelector('main.alone'));
  pages.close();
  selection.clear();
  session.me = null;
  pages = await openConsole(answers);
  await pages.until(() => fields().length > 0);
  expect(fields().map((f) => f.value)).toEqual(['12.50', 'The heating was broken']);
  expect([...selection.ids]).toEqual([1, 2]);
  expect(sessionStorage.getItem('forms')).toBeNull();
});

it('leaves the rows of a sorted list where they are while the pointer is over them', async () => {
  const energy = (id: number, percent: number) => summary(id, { telemetry: { ...summary(id).telemetry, battery_level_percent: percent } });
  answers.vehicles = [energy(21, 10), energy(22, 20), energy(23, 30)];
  await pages.send('reset', {});
  await pages.open('#/?sort=energy&contact=online', 'tr[data-vehicle="22"]');
  const order = () => [...document.querySelectorAll<HTMLElement>('tr[data-vehicle]')].map((row) => row.dataset.vehicle).join();
  await pages.until(() => document.querySelector('thead .energy')?.getAttribute('aria-sort') === 'ascending' && order() === '21,22,23');
  const list = document.querySelector('.list')!;
  list.dispatchEvent(new Event('pointermove', { bubbles: true }));
  await pages.send('status', { vehicle_id: 21, at: ago(0), telemetry: { battery_level_percent: 99 } });
  await pages.until(() => pages.texts('tr[data-vehicle="21"] .energy')[0]?.startsWith('99 %'));
  const connectivity = { status: 'offline', last_seen: null } as const;
  answers.vehicles = [energy(21, 99), { ...energy(22, 20), connectivity }, energy(23, 30)];
  await pages.send('presence', { vehicle_id: 22, connectivity });
  await pages.until(() => vehicles.all.find((v) => v.id === 22)?.contact === 'offline');
  expect(order()).toBe('21,22,23');
  list.dispatchEvent(new Event('pointerleave'));
  await pages.until(() => order() === '23,21');
  list.dispatchEvent(new Event('pointermove', { bubbles: true }));
  click('th.energy button'); // a person wants another order
  await pages.until(() => order() === '21,23');
});
