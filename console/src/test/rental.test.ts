// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Transition } from '../api/client';
import { at, booking, doubled, openConsole, uuid, type Answers, type Pages } from './service';

const transition = (n: number, change: Partial<Transition> = {}): Transition => ({
  id: uuid(n), booking_id: 1, kind: 'end', state: 'open', step: 'confirm', needs_staff: false, next: ['wait', 'ask_again'],
  steps: [
    { name: 'check', state: 'done', at: at(1) },
    { name: 'command', state: 'done', at: at(2) },
    { name: 'confirm', state: 'unknown', at: at(12) },
    { name: 'book', state: 'pending', at: null },
  ],
  error: null, checks: [{ name: 'doors', ok: true, expected: 'closed', reported: 'closed' }], command_id: uuid(1), requested_at: at(1),
  requested_by: 'anna', override: null, ended_at: null,
  ...change,
});
const event = (n: number, change: object) => ({
  vehicle_id: 1, at: at(20), booking_id: 1, reference: 'BK-2026-00001', status: 'active',
  transition: { id: uuid(n), kind: 'end', state: 'open', step: 'confirm', code: null, needs_staff: false, ...change },
});

let pages: Pages;
let answers: Answers;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  answers = {
    ...doubled, halts: [], activity: [],
    'bookings/1': booking(1, { transition: transition(7), paused: true }),
    'bookings/1/transitions': [transition(7), transition(6, { kind: 'start', state: 'done', step: null, ended_at: at(0) })],
    bookings: [booking(1, { transition: transition(7), paused: true }), booking(2)],
  };
  pages = await openConsole(answers);
});
afterEach(() => pages.close());

it('shows the steps of a rental, and reads it again when something becomes of it', async () => {
  await pages.open('#/bookings/1', 'section[data-transition]');
  expect(pages.texts('.bar strong')[0]).toBe('active, paused');
  expect(pages.texts('section[data-transition] li').map((text) => text.split(' ')[0])).toEqual([
    'Check', 'Command', 'Confirmation', 'Booking',
  ]);
  expect(pages.texts('[aria-current="step"]')[0]).toMatch(/^Confirmation not known/);
  expect(pages.texts('section[data-transition] [role="status"]')[0]).toMatch(/^The vehicle has not said whether it is locked\./);
  expect(pages.texts('section[data-transition] .alarm')).toEqual([]);
  expect(pages.texts('tr[data-transition] th')).toEqual(['End by anna', 'Start by anna']);

  answers['bookings/1'] = booking(1, { transition: transition(7, { needs_staff: true }) });
  await pages.send('rental', event(7, { needs_staff: true }));
  await pages.until(() => pages.texts('section[data-transition] .alarm').length === 1);
  expect(pages.texts('.alarm')[0]).toMatch(/^A person should look at it: it has been open for long\./);

  answers['bookings/1'] = booking(1, {
    status: 'completed',
    transition: transition(7, { state: 'done', step: null, override: 'It stood open.', ended_at: at(30) }),
  });
  await pages.send('rental', event(7, { state: 'done', step: 'book' }));
  await pages.until(() => document.querySelector('section[data-transition][data-state="done"]'));
  expect(pages.texts('section[data-transition]')[0]).toContain('Without the return check: It stood open.');
  expect(pages.errors).toEqual([]);
});

it('lets staff give a start up whose vehicle does not lock, and not once it has ended', async () => {
  const stuck = transition(7, { kind: 'start', step: 'undo', needs_staff: true });
  const sent: unknown[] = [];
  const giveUp = async () => {
    document.querySelector<HTMLElement>('[data-action="overrideStart"]')?.click();
    await pages.until(() => document.querySelector('dialog[open] [name="reason"]'));
    const reason = document.querySelector<HTMLInputElement>('dialog[open] [name="reason"]')!;
    reason.value = 'I have locked it.';
    reason.dispatchEvent(new Event('input', { bubbles: true }));
  };
  const send = () => document.querySelector<HTMLElement>('[data-send="overrideStart"]')?.click();
  answers['bookings/1'] = booking(1, { status: 'upcoming', transition: stuck });
  answers['bookings/1/rental/start'] = (_: string, init: RequestInit) => {
    sent.push(JSON.parse(String(init.body)));
    return stuck;
  };
  await pages.open('#/bookings/1', 'section[data-transition]');
  expect(pages.texts('.alarm')[0]).toContain('Then give the start up without the vehicle.');
  await giveUp();
  send();
  await pages.until(() => document.querySelector('dialog[open]') === null);
  expect(sent).toEqual([{ override: true, reason: 'I have locked it.' }]);

  await giveUp();
  answers['bookings/1'] = booking(1, { status: 'upcoming', transition: { ...stuck, state: 'failed', step: null } });
  await pages.send('rental', event(7, { kind: 'start', state: 'failed' }));
  await pages.until(() => document.querySelector('section[data-transition][data-state="failed"]'));
  send(); // it would begin another start
  await pages.until(() => pages.texts('dialog[open] .problem').length === 1);
  expect(sent).toHaveLength(1);
});

it('reads bookings again when one is made or changed elsewhere', async () => {
  const statuses = () => [...document.querySelectorAll<HTMLElement>('tr[data-booking]')].map((row) => row.dataset.status);
  const soon = 5000; // without events, they are read every 10 s
  await pages.open('#/bookings', 'tr[data-booking="2"]');
  answers.bookings = [booking(1), booking(2, { status: 'cancelled' }), booking(3, { status: 'upcoming' })];
  await pages.send('booking', { vehicle_id: 1, at: at(20), booking_id: 3, reference: 'BK-2026-00003', status: 'upcoming' });
  await vi.waitFor(() => expect(statuses()).toEqual(['active', 'cancelled', 'upcoming']), soon);

  answers['bookings/3'] = booking(3, { status: 'upcoming' });
  await pages.open('#/bookings/3', '[data-booking="3"][data-status="upcoming"]');
  answers['bookings/3'] = booking(3, { status: 'cancelled' });
  await pages.send('booking', { vehicle_id: 1, at: at(21), booking_id: 3, reference: 'BK-2026-00003', status: 'cancelled' });
  await vi.waitFor(() => expect(pages.texts('[data-booking="3"][data-status="cancelled"]')).toHaveLength(1), soon);
});

it('marks a rental that needs a person in the list of bookings', async () => {
  await pages.open('#/bookings', 'tr[data-booking]');
  expect(pages.texts('tr[data-booking="1"] td')[0]).toMatch(/^active paused/);
  expect(pages.texts('[data-staff]')).toEqual([]);
  await pages.send('rental', event(7, { needs_staff: true }));
  await pages.until(() => pages.texts('tr[data-booking="1"] [data-staff]').length === 1);
  await pages.send('rental', event(7, { state: 'done' }));
  await pages.until(() => pages.texts('[data-staff]').length === 0);
});
