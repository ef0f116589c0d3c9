// @vitest-environment happy-dom
// What pages say of requests whose answer is slow, late, or lost.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { commands } from '../state/commands.svelte';
import { agencies } from '../state/agencies.svelte';
import { session } from '../state/session.svelte';
import { requestsTo } from '../state/requests.svelte';
import { selection } from '../state/selection.svelte';
import { stream } from '../state/stream.svelte';
import { en } from '../texts/en';
import { booking, command, doubled, Envelope, openConsole, uuid, vehicle, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  sessionStorage.clear();
  answers = { ...doubled, halts: [] };
  pages = await openConsole(answers);
  await pages.open('#/', 'tr[data-vehicle]');
});
afterEach(() => {
  vi.useRealTimers();
  pages.close();
  selection.clear();
});

const click = (selector: string) => document.querySelector<HTMLElement>(selector)!.click();
const submit = () =>
  document.querySelector<HTMLFormElement>('dialog[open] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
const inProgress = { code: 'command_in_progress', reason: null, detail: null, outcome: 'not_executed' };
const refused = new Envelope(409, { message: 'No.', error: inProgress });
/** Makes an answer wait until the returned function is called. */
function hold(path: string, answer: unknown): () => void {
  let release = () => {};
  answers[path] = () => new Promise((resolve) => (release = () => resolve(answer)));
  return () => release();
}

it('says of an order without an answer yet that it is being sent, and nothing of the one before', async () => {
  answers['vehicles/1/commands'] = [command(1, { requested_at: new Date().toISOString() })];
  const release = hold('vehicles/1/control/lock', refused);
  await pages.open('#/vehicles/1', '[data-action="lock"]');
  await pages.until(() => /^Lock: done/.test(pages.texts('[data-result] [role="status"]')[0] ?? ''));
  click('[data-action="lock"]');
  await pages.until(() => pages.texts('[data-result] [role="status"]')[0] === 'Sending…');
  release();
  await pages.until(() => pages.texts('[data-result] .problem').length === 1);
});

it.each([
  ['vehicles/1/control/lock', '#/vehicles/1', '[data-action="lock"]', 'Lock, M-IM 2101: This did not work: '],
  ['bookings/1/cancel', '#/bookings/1', '[data-action="cancel"]', 'Cancel the booking, BK-2026-00001: This did not work: '],
  ['commands', '#/', '.chosen [data-action="lock"]', 'Lock: 1 vehicle: This did not work: '],
])('says why %s was refused on the page to which the person has gone on', async (path, from, button, text) => {
  answers['bookings/1'] = booking(1, { status: 'upcoming', charges: [] });
  selection.set([10], true);
  await pages.open(from, button);
  await pages.until(() => document.querySelector(`${button}[aria-disabled="false"]`));
  const release = hold(path, refused);
  click(button);
  await new Promise((done) => setTimeout(done));
  if (document.querySelector('dialog[open] form')) submit();
  await pages.until(() => pages.requests.includes(`POST ${path}`));
  await pages.open('#/units', 'tr[data-unit]');
  release();
  const notice = `main ~ .problem, .problem:has(a[href="${from}"])`;
  await pages.until(() => pages.texts(notice).some((shown) => shown.startsWith(text)));
  await pages.open('#/activity', 'tbody tr'); // it stays until it was seen
  expect(pages.texts(notice)).toHaveLength(1);
  click('.problem:has(a) button');
  await pages.until(() => pages.texts(notice).length === 0);
});

it('does not say of a change without an answer that it did not work', async () => {
  answers.halts = (_: string, { method }: RequestInit) => {
    if (method === 'PUT') throw new TypeError('Failed to fetch');
    return [];
  };
  await pages.press('h');
  await pages.until(() => document.querySelector('dialog[open] form'));
  submit();
  await pages.until(() => pages.texts('dialog[open] [role="alert"]').includes(en.trouble.unanswered));
});

it.each([500, 503])('does not say of a change that the service answers with %i that it did not work', async (code) => {
  const failed = new Envelope(code, { message: 'Later.', error: { code: 'service_unavailable', outcome: null } });
  answers.halts = (_: string, { method }: RequestInit) => (method === 'PUT' ? failed : []);
  await pages.press('h');
  await pages.until(() => document.querySelector('dialog[open] form'));
  submit();
  await pages.until(() => pages.texts('dialog[open] [role="alert"]').includes(en.trouble.unanswered));
  document.querySelector<HTMLElement>('dialog[open] [type="button"]')!.click();

  answers['vehicles/1'] = (_: string, { method }: RequestInit) => (method === 'PATCH' ? failed : vehicle(1));
  answers['vehicles/1/notes'] = (_: string, { method }: RequestInit) => (method === 'POST' ? failed : []);
  await pages.open('#/vehicles/1', '[data-notes] textarea');
  document.querySelector('[data-notes] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => pages.texts('[data-notes] .problem').includes(en.trouble.unanswered));
  click('button[data-action="maintenance"]');
  await pages.until(() => document.querySelector('dialog[open] [name="reason"]'));
  submit();
  await pages.until(() => pages.texts('dialog[open] [role="alert"]').includes(en.trouble.unanswered));
});

it('says of a change that was refused, and of a reading that failed, that it did not work', async () => {
  answers['vehicles/1/notes'] = new Envelope(503, { message: 'Later.', error: { code: 'service_unavailable', outcome: null } });
  await pages.open('#/vehicles/1', '[data-notes] .problem');
  expect(pages.texts('[data-notes] .problem')[0]).toMatch(/^This did not work: /);
  answers['vehicles/1/notes'] = new Envelope(409, { message: 'No.', error: { code: 'conflict', outcome: null } });
  document.querySelector('[data-notes] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => pages.texts('[data-notes] form ~ .problem').includes('This did not work: No.'));
});

const hit = (selector: string, detail: number) =>
  document.querySelector(selector)!.dispatchEvent(new MouseEvent('click', { detail, bubbles: true, cancelable: true }));
const orders = () => pages.requests.filter((r) => r.startsWith('POST vehicles/1/control'));

it('a double click is for what its first click has hit, and not for a dialog that opened, or what lay below one that closed', async () => {
  answers['vehicles/1/control/unlock'] = command(5, { action: 'unlock' });
  answers['vehicles/1/commands'] = [];
  await pages.open('#/vehicles/1', '[data-action="unlock"][aria-disabled="false"]');
  await new Promise((done) => setTimeout(done, 600));
  hit('[data-action="unlock"]', 1);
  await pages.until(() => document.querySelector('dialog[open] .danger'));
  hit('dialog[open] .danger', 2);
  expect(orders()).toEqual([]);
  hit('dialog[open] .danger', 1);
  await pages.until(() => document.querySelector('dialog[open]') === null && orders().length === 1);
  hit('main a[href="#/"]', 2);
  hit('nav a[href="#/units"]', 2);
  expect(location.hash).toBe('#/vehicles/1');
});

it('a click is not for a main button that has just taken the place of the one that was seen', async () => {
  const now = () => new Date().toISOString();
  answers['vehicles/1/control/lock'] = refused;
  answers['vehicles/1/commands'] = [];
  await pages.open('#/vehicles/1', '.main [data-action="unlock"][aria-disabled="false"]');
  await new Promise((done) => setTimeout(done, 600));
  await pages.send('status', { vehicle_id: 1, at: now(), telemetry: { is_locked: false } });
  await pages.until(() => document.querySelector('.main [data-action="lock"]'));
  hit('.main [data-action="lock"]', 1);
  expect(orders()).toEqual([]);
  hit('.main [data-action="lock-and-disable-driving"]', 1); // it has not moved
  await pages.until(() => document.querySelector('dialog[open]'));
  click('dialog[open] .buttons button');
  await new Promise((done) => setTimeout(done, 600));
  hit('.main [data-action="lock"]', 1);
  await pages.until(() => orders().length === 1);
});

it('says when an order was sent whose outcome is not known: sent again, it could be executed only now', async () => {
  answers['vehicles/1/control/lock'] = () => {
    throw new TypeError('Failed to fetch');
  };
  await pages.open('#/vehicles/1', '[data-action="lock"]');
  click('[data-action="lock"]');
  const said = () => pages.texts('.problem p')[0] ?? '';
  await pages.until(() => /^Lock\. .* the request of \d\d:\d\d:\d\d arrived\. .* now unless/.test(said()));
  answers['vehicles/1/control/lock'] = new Envelope(503, { message: 'No.', error: { code: 'service_unavailable', outcome: null } });
  click('[data-send="again"]');
  await pages.until(() => said().endsWith('its result. The service is unavailable. Try again in a moment.')); // not that it did not work
  requestsTo('vehicle 1', 'zoe').forget();
});

it('repeats a bulk whose answer was lost as it was ordered, also from the fleet', async () => {
  const sent: unknown[] = [];
  answers.commands = (_: string, { method, body }: RequestInit) => {
    if (method !== 'POST') return [];
    sent.push(JSON.parse(String(body)));
    throw new TypeError('Failed to fetch');
  };
  const horn = { signal: 'horn', duration_ms: 1000 };
  answers['commands?bulk='] = { ...(doubled['commands?bulk='] as object), action: 'attention', parameters: horn };
  await pages.open(`#/bulk/${uuid(9)}`, '[data-action="retry"]');
  click('[data-action="retry"]');
  await pages.until(() => document.querySelector('dialog[open] form'));
  submit();
  await pages.until(() => document.querySelector('[data-send="again"]'));
  await pages.open('#/', '[data-send="again"]');
  click('[data-send="again"]');
  await pages.until(() => sent.length === 2);
  expect(sent[1]).toEqual(sent[0]);
  await pages.until(() => document.querySelector('[data-send="forget"]:not(:disabled)'));
  click('[data-send="forget"]');
});

it('reads a vehicle again that could not be read at first', async () => {
  const unavailable = { code: 'service_unavailable', reason: null, detail: null, outcome: null };
  answers['vehicles/1'] = new Envelope(503, { message: 'Later.', error: unavailable });
  vi.useFakeTimers({ shouldAdvanceTime: true });
  await pages.open('#/vehicles/1', '.problem');
  expect(pages.texts('.problem')[0]).toMatch(/Trying again…$/);
  answers['vehicles/1'] = vehicle(1);
  await vi.advanceTimersByTimeAsync(21_000);
  await pages.until(() => document.querySelector('[data-action="lock"]'));
  expect(pages.texts('main > .problem')).toEqual([]);
  stream.readings++;
});

it.each([
  ['agencies', '#/agencies?agency_id=1', '[data-agency]'],
  ['agencies', '#/charges', 'select[aria-label="Agency"] option:nth-child(2)'],
  ['stations', '#/agencies?agency_id=1', '[data-station]'],
  ['agencies/1/keys', '#/agencies?agency_id=1', '[data-key]'],
  ['agencies/1/alert-rules', '#/agencies?agency_id=1', '[data-rule]'],
  ['agencies/1/clients/anna/payment-methods', '#/client?agency_id=1&client=anna', 'main ul li'],
  ['commands', '#/commands', 'tr[data-command]'],
  [`commands/${uuid(1)}`, `#/commands/${uuid(1)}`, '[data-step="answered"]'],
])('reads %s again where that has failed', async (path, hash, shown) => {
  answers[path] = new Envelope(503, { message: 'Later.', error: { code: 'service_unavailable', reason: null, detail: null } });
  commands.all.clear();
  agencies.all = [];
  session.me = { ...session.me!, scopes: ['halt', 'agency_keys'] };
  vi.useFakeTimers({ shouldAdvanceTime: true });
  await pages.open(hash, 'main .problem');
  await vi.advanceTimersByTimeAsync(2000);
  answers[path] = doubled[path];
  await vi.advanceTimersByTimeAsync(11_000);
  await pages.until(() => document.querySelector(shown));
  expect(pages.texts('main .problem')).toEqual([]);
});
