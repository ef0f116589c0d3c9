// @vitest-environment happy-dom
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { clock } from '../state/clock.svelte';
import { at, booking, doubled, Envelope, openConsole, summary, type Answers, type Pages } from './service';

let pages: Pages;
let sent: { path: string; body: unknown; key: string | undefined }[];
let fails = false;
const made = booking(3, { status: 'upcoming', charges: [], can_extend: true, end_date: '2126-01-02T10:00:00.000Z' });
const take = (path: string, { method, body, headers }: RequestInit) => {
  if (method === 'POST') {
    sent.push({ path, body: body && JSON.parse(String(body)), key: (headers as Record<string, string>)['Idempotency-Key'] });
    if (fails) throw new Error('lost');
    return made;
  }
  if (path.includes('end_date=')) return { ...made, pricing: { ...made.pricing, rental_total: made.pricing.rental_total + 5 } };
  return path.startsWith('bookings/') ? made : [];
};
const answers: Answers = {
  ...doubled,
  halts: [],
  'bookings/3': take,
  'bookings/3/notes': [],
  'bookings/3/extend': take,
  'bookings/3/vehicle': take,
  'bookings/3/cancel': take,
};
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  sessionStorage.clear();
  sent = [];
  fails = false;
  pages = await openConsole(Object.assign(answers, { bookings: take, clients: [] }));
});
afterEach(() => pages.close());

const field = (name: string) => document.querySelector<HTMLInputElement>(`dialog[open] [name="${name}"]`)!;
function set(name: string, value: string) {
  field(name).value = value;
  for (const event of ['input', 'change']) field(name).dispatchEvent(new Event(event, { bubbles: true }));
}
const send = () =>
  document.querySelector('dialog[open] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
async function click(action: string) {
  await pages.until(() => document.querySelector(`[data-action="${action}"]`));
  document.querySelector<HTMLElement>(`[data-action="${action}"]`)!.click();
  await pages.until(() => document.querySelector('dialog[open] form'));
}

it('is made for a client, once although the answer was lost', async () => {
  await pages.open('#/bookings', 'main h1');
  await click('new-booking');
  set('vehicle', '(#2)');
  await pages.until(() => document.querySelectorAll('dialog[open] select[name="pickup"] option').length === 3);
  set('client', ' anna ');
  set('start', '2126-03-01T10:00');
  set('end', '2126-03-01T12:00');
  set('pickup', '1');
  await pages.until(() => pages.texts('[data-price]')[0] === 'Price: €15.09.');
  fails = true;
  send();
  await pages.until(() => pages.texts('dialog[open] [role="alert"]').length > 0);
  fails = false;
  send();
  await pages.until(() => location.hash === '#/bookings/3');
  expect(sent[0]!.body).toEqual({
    agency_id: 1,
    client: 'anna',
    vehicle_id: 2,
    start_date: new Date('2126-03-01T10:00').toISOString(),
    end_date: new Date('2126-03-01T12:00').toISOString(),
    pickup_station_id: 1,
    dropoff_station_id: 1,
  });
  expect(sent[1]).toEqual(sent[0]);
});

it('is made for the client, and of the agency, that the page is about', async () => {
  answers['agencies/1/clients/anna/payment-methods'] = [];
  await pages.open('#/client?agency_id=1&client=anna', 'main h1');
  await click('new-booking');
  expect(field('client').value).toBe('anna');
  await pages.until(() => pages.texts('dialog[open] option').filter((text) => text.includes('€')).length === 2);
  await pages.open('#/client?agency_id=2&client=anna', 'main h1');
  await click('new-booking');
  await pages.until(() => pages.texts('[data-price]')[0]?.includes('free'));
  expect(pages.texts('dialog[open] option').filter((text) => text.includes('€'))).toEqual([]);
});

it.each([
  ['upcoming', { status: 'maintenance' }, 'M-IM 2101 is in maintenance: the booking cannot begin before it is back in service.'],
  ['active', { status: 'maintenance' }, undefined],
  ['active', { connectivity: { status: 'offline', last_seen: null } }, 'The unit is offline.'],
] as const)('%s says what of its vehicle is in the way: %o', async (status, change, says) => {
  pages.close();
  const car = summary(1, change);
  pages = await openConsole({ ...doubled, halts: [], vehicles: [car], 'bookings/1': booking(1, { status }) });
  await pages.open('#/bookings/1', '[data-booking]');
  expect(pages.texts('[data-hindrance]')[0]?.slice(0, says?.length)).toBe(says);
});

it('says of an extension that costs nothing that the price stays', async () => {
  answers['bookings/3/extend'] = made;
  await pages.open('#/bookings/3', '[data-action="extend"]');
  await click('extend');
  await pages.until(() => pages.texts('dialog[open] li').includes('The price stays €100.00.'));
  answers['bookings/3/extend'] = take;
});

it('asks once for the price of an extension of an overdue rental, and takes none before it is there', async () => {
  let answer = () => {};
  answers['bookings/1/extend'] = () => new Promise((resolve) => (answer = () => resolve(booking(1))));
  const asked = () => pages.requests.filter((r) => r.includes('bookings/1/extend?')).length;
  await pages.open('#/bookings/1', '[data-action="extend"]');
  await click('extend');
  const button = document.querySelector<HTMLButtonElement>('[data-send="extend"]')!;
  await pages.until(asked);
  for (let n = 0; n < 2; n++) {
    clock.now += 1000;
    await new Promise((done) => setTimeout(done, 400));
  }
  expect([asked(), button.disabled]).toEqual([1, true]);
  answer();
  await pages.until(() => !button.disabled);
});

it('names the zone that its times will have, not that of now', async () => {
  await pages.open('#/bookings', 'main h1');
  await click('new-booking');
  set('start', '2126-03-01T10:00');
  set('end', '2126-07-01T12:00');
  const labels = () => pages.texts('dialog[open] label').slice(0, 2).join();
  await pages.until(() => labels() === 'Start (GMT+1),End (GMT+2)');
  set('end', '');
  await pages.until(() => /End \(GMT\+\d\)/.test(labels()));
});

it('offers the vehicles that are free then, with their prices', async () => {
  answers['fleet/free'] = (path: string) =>
    path.includes('from=2126-03') ? [] : [{ vehicle_id: 2, rental_total: 12, deposit: 200, currency: 'EUR' }];
  await pages.open('#/bookings', 'main h1');
  await click('new-booking');
  await pages.until(() => pages.texts('[data-price]')[0] === '1 vehicle is free then.');
  expect(pages.texts('dialog[open] option').filter((text) => text.includes('€'))).toEqual(['Opel Corsa, €12.00']);
  set('vehicle', '(#1)');
  expect(field('vehicle').validationMessage).toMatch(/^The vehicle cannot be booked for this time/);
  set('vehicle', '(#2)');
  await pages.until(() => pages.texts('[data-price]')[0] === 'Price: €12.00, and a deposit of €200.00.');
  set('start', '2126-03-01T10:00');
  set('end', '2126-03-01T12:00');
  await pages.until(() => /cannot be booked/.test(pages.texts('[data-price]')[0] ?? ''));
  expect(document.querySelector<HTMLButtonElement>('dialog[open] .primary')!.disabled).toBe(true);
});

it.each([
  ['zoe-2', /^The client is not known/],
  ['anna', /no card/],
] as const)('is not made for %s without a card', async (client, says) => {
  answers.bookings = (path: string, { method }: RequestInit) =>
    method === 'POST' ? new Envelope(402, { message: 'No card.', error: { code: 'payment_method_required' } }) : [];
  answers.clients = [{ agency_id: 1, client: 'anna' }];
  await pages.open('#/bookings', 'main h1');
  await click('new-booking');
  set('vehicle', '(#2)');
  await pages.until(() => document.querySelectorAll('dialog[open] select[name="pickup"] option').length === 3);
  set('client', client);
  set('pickup', '1');
  send();
  await pages.until(() => pages.texts('dialog[open] [role="alert"]').some((text) => says.test(text)));
});

it('asks about no other change until the answer to the first is there', async () => {
  await pages.open('#/bookings/3', '[data-action="extend"]');
  await click('extend');
  let answer = () => {};
  answers['bookings/3/extend'] = () => new Promise((resolve) => (answer = () => resolve(made)));
  send();
  const open = () => document.querySelector<HTMLDialogElement>('dialog[open]');
  open()!.close();
  await pages.until(() => pages.texts('main [role="status"]').includes('Sending…'));
  const other = document.querySelector<HTMLElement>('[data-action="cancel"]')!;
  expect(other.getAttribute('aria-disabled')).toBe('true');
  other.click();
  await tick();
  expect(open()).toBeNull();
  answers['bookings/3/extend'] = take;
  answer();
  await pages.until(() => other.getAttribute('aria-disabled') === 'false');
  await click('cancel');
});

it('is extended, gets another vehicle, and is cancelled', async () => {
  await pages.open('#/bookings/3', '[data-action="extend"]');
  await click('extend');
  expect(new Date(field('end').value).toISOString().slice(0, 16)).toBe('2126-01-02T11:00'); // an hour more
  set('end', '2126-03-01T12:00');
  const { rental_total: was } = made.pricing;
  const costs = `€${(was + 5).toFixed(2)} instead of €${was.toFixed(2)}`;
  await pages.until(() => pages.texts('dialog[open] li').some((text) => text.includes(costs)));
  send();
  await pages.until(() => pages.texts('main [role="status"]').includes('Extended.'));
  await click('vehicle');
  set('vehicle', '(#2)');
  await pages.until(() => !document.querySelector<HTMLButtonElement>('[data-send="vehicle"]')!.disabled);
  send();
  await pages.until(() => pages.texts('main [role="status"]').includes('The booking has another vehicle.'));
  await click('cancel');
  send();
  await pages.until(() => pages.texts('main [role="status"]').includes('Cancelled.'));
  expect(sent.map(({ path, body }) => [path, body])).toEqual([
    ['bookings/3/extend', { end_date: new Date('2126-03-01T12:00').toISOString() }],
    ['bookings/3/vehicle', { vehicle_id: 2 }],
    ['bookings/3/cancel', undefined],
  ]);
  expect(pages.errors).toEqual([]);
});
