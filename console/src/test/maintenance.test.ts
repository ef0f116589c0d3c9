// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { session } from '../state/session.svelte';
import { at, doubled, Envelope, openConsole, vehicle, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
let sent: unknown[];
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  sessionStorage.clear();
  sent = [];
  const car = vehicle(1);
  answers = {
    ...doubled,
    halts: [],
    'vehicles/1': (_: string, { method, body }: RequestInit) => {
      if (method !== 'PATCH') return car;
      const { status, reason, until } = JSON.parse(String(body));
      sent.push({ status, reason, until });
      const data = { ...car, status, maintenance: status === 'maintenance' ? { reason, until, since: at(0), by: 'zoe' } : null };
      return new Envelope(200, { success: true, message: '', data, meta: { bookings_in_maintenance: 2 } });
    },
  };
  pages = await openConsole(answers);
  await pages.open('#/vehicles/1', 'button[data-action="maintenance"]');
});
afterEach(() => pages.close());

const click = (action: string) => document.querySelector<HTMLElement>(`button[data-action="${action}"]`)!.click();

it('has what was typed of this vehicle again, and nothing of another', async () => {
  const typed = { reason: 'brakes', until: '' };
  for (const [id, shown] of [[2, false], [1, true]] as const) {
    pages.close();
    session.me = null;
    sessionStorage.setItem('forms', JSON.stringify({ person: 'zoe', values: { [`maintenance ${id}`]: typed } }));
    pages = await openConsole(answers);
    await pages.open('#/vehicles/1', 'button[data-action="maintenance"]');
    await pages.until(() => session.me);
    await new Promise((done) => setTimeout(done));
    expect(document.querySelector<HTMLInputElement>('dialog[open] input[name="reason"]')?.value).toBe(shown ? 'brakes' : undefined);
  }
});

it('sets a vehicle to maintenance with a reason and an end, and back', async () => {
  click('maintenance');
  await pages.until(() => document.querySelector('dialog[open] input[name="reason"]'));
  for (const [name, value] of Object.entries({ reason: 'brakes', until: '2126-03-01T18:00' })) {
    const field = document.querySelector<HTMLInputElement>(`dialog[open] input[name="${name}"]`)!;
    field.value = value;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
  document.querySelector('dialog[open] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => document.querySelector('[data-maintenance="true"]'));
  expect(pages.texts('[data-maintenance] p')[0]).toMatch(/^In maintenance: brakes, since .* \(zoe\), until .*2126/);
  expect(document.querySelector('[data-maintenance] a')!.getAttribute('href')).toBe(
    '#/bookings?vehicle_id=1&status=upcoming%2Cactive&to=2126-03-01T18%3A00',
  );
  click('back-to-service');
  await pages.until(() => document.querySelector('[data-maintenance="false"]'));
  const until = new Date('2126-03-01T18:00').toISOString();
  expect(sent).toEqual([
    { status: 'maintenance', reason: 'brakes', until },
    { status: 'available', reason: undefined, until: undefined },
  ]);
  expect(pages.errors).toEqual([]);
});

it('has what was typed again when the page was loaded again', async () => {
  click('maintenance');
  await pages.until(() => document.querySelector('dialog[open] input[name="reason"]'));
  const field = document.querySelector<HTMLInputElement>('dialog[open] input[name="reason"]')!;
  field.value = 'brakes';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  dispatchEvent(new PageTransitionEvent('pagehide'));
  pages.close();
  session.me = null;
  pages = await openConsole(answers);
  await pages.open('#/vehicles/1', 'dialog[open] input[name="reason"]');
  expect(document.querySelector<HTMLInputElement>('dialog[open] input[name="reason"]')!.value).toBe('brakes');
});

it('shows what others have changed, and begins an edit with that', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  pages.close();
  pages = await openConsole(answers);
  await pages.open('#/vehicles/1', 'button[data-action="maintenance"]');
  for (const reason of ['tyres', 'brakes']) {
    answers['vehicles/1'] = { ...vehicle(1), status: 'maintenance', maintenance: { reason, until: null, since: at(0), by: 'eva' } };
    await vi.advanceTimersByTimeAsync(21_000);
    await pages.until(() => pages.texts('[data-maintenance] p')[0]?.startsWith(`In maintenance: ${reason}, since`));
  }
  expect(pages.texts('.bar .pill, .bar strong').join()).toContain('maintenance');
  vi.useRealTimers();
});

it('shows it without buttons to those who may not change it', async () => {
  pages.close();
  session.me = { ...session.me!, level: 'viewer' };
  answers['vehicles/1'] = { ...vehicle(1), status: 'maintenance', maintenance: { reason: 'brakes', until: null, since: null, by: null } };
  answers['vehicles/1/status'] = { ...(doubled['vehicles/1/status'] as object), status: 'maintenance' };
  pages = await openConsole(answers);
  await pages.open('#/vehicles/1', '[data-maintenance="true"]');
  expect(pages.texts('[data-maintenance] p')[0]).toBe('In maintenance: brakes, without an end');
  expect(document.querySelector('[data-maintenance] button')).toBeNull();
});
