// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Alert } from '../api/client';
import { at, doubled, Envelope, openConsole, summary, uuid, type Answers, type Pages } from './service';

let pages: Pages;
let answers: Answers;
let sent: unknown[];
const alert = (n: number, change: Partial<Alert> = {}): Alert => ({
  id: uuid(n), rule: 'left_open', severity: 'warning', state: 'open', summary: '', agency_id: 1, vehicle_id: 1, plate_number: 'M-IM 2101',
  person: null, booking_id: null, command_id: null, facts: { open: ['lock', 'trunk'] }, since: at(n), opened_at: at(n), cleared_at: null,
  acknowledged_at: null, acknowledged_by: null, note: null, holder: null, ...change,
});
const holder = { booking_id: 7, reference: 'BK-7', client: 'anna' };
const late = alert(3, { rule: 'overdue', facts: {}, booking_id: 7, holder });
const seen = { acknowledged_at: at(5), acknowledged_by: 'zoe' };
const of = (severity: string, ...list: Alert[]) => ({ [`alerts?state=open&severity=${severity}&limit=100`]: list });

beforeEach(async () => {
  localStorage.setItem('map', 'hidden');
  sessionStorage.clear();
  sent = [];
  answers = {
    ...doubled,
    halts: [],
    ...of('critical', alert(1, { severity: 'critical', rule: 'unit_alarm', facts: { kind: 'towing' } })),
    ...of('warning', alert(2), late),
    ...of('info', alert(4, { severity: 'info', rule: 'lamp', facts: { lamps: ['tire_failure'] }, ...seen })),
    [`alerts/${uuid(2)}/acknowledge`]: (_: string, { body }: RequestInit) => {
      sent.push(JSON.parse(String(body)));
      return alert(2, { acknowledged_at: at(9), acknowledged_by: 'zoe', note: 'on the way' });
    },
  };
  pages = await openConsole(answers);
  await pages.open('#/attention', '[data-alert]');
});
afterEach(() => {
  pages.close();
  vi.useRealTimers();
});

it('orders what needs a person, each with what it does next', async () => {
  expect(pages.texts('[data-alert] .what')).toEqual([
    'M-IM 2101 Alarm of the unit: it is towed',
    'M-IM 2101 Not returned in time',
    'M-IM 2101 Left open: not locked, boot',
    expect.stringMatching(/^M-IM 2101 Warning lamp: tyre failure acknowledged by zoe, /),
  ]);
  expect(pages.texts('[data-alert] .actions > :first-child')).toEqual(['Locate', 'Open booking', 'Lock', 'Open vehicle']);
  expect(pages.texts('[data-filter]')).toEqual(['all 3', 'critical 1', 'warning 2', 'info 0', 'cleared']);
  expect(pages.texts('nav .count')).toEqual(['3']);
  await pages.open('#/bookings', 'h1');
  await pages.until(() => document.querySelector('a[href="#/attention?severity=critical"]'));
  expect(pages.errors).toEqual([]);
});

it('leads from the number of bookings today to them', async () => {
  const link = () => [...document.querySelectorAll('.numbers a')].find((a) => a.getAttribute('href')?.startsWith('#/bookings'));
  await pages.until(() => link()?.textContent === '4'); // two, which the service of this test lists twice
  const asked = () => new URLSearchParams(pages.requests.findLast((r) => r.startsWith('GET bookings?'))?.split('?')[1]);
  const counted = asked();
  const instant = (name: string) => new Date(counted.get(name)!);
  const [from, to] = [instant('from'), instant('to')];
  expect([from.toTimeString().slice(0, 8), to.toTimeString().slice(0, 8)]).toEqual(['00:00:00', '00:00:00']);
  expect(from.getTime() <= Date.now() && Date.now() < to.getTime() && to.getTime() - from.getTime() < 26 * 3_600_000).toBe(true);
  await pages.open(link()!.getAttribute('href')!, 'tr[data-booking]');
  const filters = (query: URLSearchParams) => ['status', 'from', 'to'].map((name) => query.get(name));
  expect(filters(asked())).toEqual(filters(counted));
  const fields = [...document.querySelectorAll<HTMLInputElement>('input[type="datetime-local"]')];
  expect(fields.map((field) => Date.parse(field.value))).toEqual([from.getTime(), to.getTime()]);
  expect(document.querySelector<HTMLSelectElement>('.filters select')!.selectedOptions[0]?.textContent).toBe('not cancelled');
});

it('counts the bookings of the next day from midnight on', async () => {
  const { clock } = await import('../state/clock.svelte');
  await pages.open('#/attention', '.numbers a');
  const now = new Date(clock.seldom);
  clock.seldom = now.setHours(24);
  const midnight = new Date(now.setHours(0, 0, 0, 0)).toISOString();
  await pages.until(() => pages.requests.some((r) => r.startsWith(`GET bookings?`) && r.includes(encodeURIComponent(midnight))));
});

it('acknowledges with a note, and follows events', async () => {
  document.querySelector<HTMLElement>(`[data-alert="${uuid(2)}"] [data-acknowledge]`)?.click();
  await pages.until(() => document.querySelector('dialog[open] input[name="note"]'));
  const field = document.querySelector<HTMLInputElement>('dialog[open] input[name="note"]')!;
  field.value = 'on the way';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  document.querySelector('dialog[open] form')?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => pages.texts('[data-filter="warning"]')[0] === 'warning 1');
  expect(sent).toEqual([{ note: 'on the way' }]);
  await pages.until(() => document.activeElement?.closest<HTMLElement>('[data-alert]')?.dataset.alert === uuid(3)); // the next one

  await pages.send('alert', { change: 'cleared', alert: alert(1) });
  await pages.until(() => pages.texts('[data-filter="critical"]')[0] === 'critical 0');
  const moved = alert(8, { severity: 'critical', rule: 'moved_without_booking', facts: { metres: 230 } });
  await pages.send('alert', { change: 'opened', alert: moved });
  await pages.until(() => pages.texts('[data-alert] .what')[0] === 'M-IM 2101 Moved without a booking: 230 m');
  expect(pages.errors).toEqual([]);
});

it.each([
  ['opened', {}],
  ['acknowledged', seen],
] as const)('does not lock a vehicle whose row has just moved under the pointer: %s', async (change, mark) => {
  const other = (facts: Alert['facts']) => alert(9, { vehicle_id: 2, plate_number: 'M-IM 2102', facts, ...mark });
  await new Promise((done) => setTimeout(done, 600));
  await pages.send('alert', { change, alert: other({ open: ['lock', 'trunk'] }) });
  await pages.until(() => document.querySelector(`[data-alert="${uuid(9)}"]`));
  const button = document.querySelector(`[data-alert="${uuid(9)}"] .actions button`)!;
  const click = () => button.dispatchEvent(new MouseEvent('click', { detail: 1, bubbles: true }));
  click();
  expect(location.hash).toBe('#/attention');
  await new Promise((done) => setTimeout(done, 600));
  await pages.send('alert', { change: 'raised', alert: other({ open: ['lock'] }) });
  click();
  expect(location.hash).toBe('#/vehicles/2');
});

it('reads the alerts again where that has failed, and says so on each page', async () => {
  pages.close();
  const [critical] = Object.keys(of('critical'));
  const [now, asked] = [answers[critical!], () => pages.requests.filter((r) => r === `GET ${critical}`).length];
  answers[critical!] = new Envelope(503, { message: 'Later.' });
  vi.useFakeTimers({ shouldAdvanceTime: true });
  pages = await openConsole(answers);
  await pages.open('#/bookings', '.problem');
  await pages.until(() => pages.texts('.problem').some((text) => text.includes('Later.')));
  answers[critical!] = now;
  const before = asked();
  await vi.advanceTimersByTimeAsync(6000);
  await pages.until(() => asked() > before && !pages.texts('.problem').some((text) => text.includes('Later.')));
});

it('says of a fleet without vehicles how they get into it, and not that nothing needs a person', async () => {
  pages.close();
  Object.assign(answers, of('critical'), of('warning'), of('info'), { vehicles: [] });
  pages = await openConsole(answers);
  await pages.open('#/attention', '.numbers');
  await pages.until(() => pages.texts('main pre')[0] === 'motorpool import fleet.json');
  expect(pages.texts('main .calm')).toEqual([]);
});

it('says that another person was faster, and what that one noted', async () => {
  document.querySelector<HTMLElement>(`[data-alert="${uuid(2)}"] [data-acknowledge]`)?.click();
  await pages.until(() => document.querySelector('dialog[open] input[name="note"]'));
  const field = document.querySelector<HTMLInputElement>('dialog[open] input[name="note"]')!;
  field.value = 'the client was called';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  document.querySelector('dialog[open] form')?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => pages.texts('dialog[open] [role="alert"]')[0]?.endsWith('on the way'));
  expect(field.value).toBe('the client was called');
});

it('stays open until the answer is there, so that it closes no other dialog', async () => {
  let answer = () => {};
  answers[`alerts/${uuid(2)}/acknowledge`] = () =>
    new Promise((resolve) => (answer = () => resolve(new Envelope(503, { message: 'Later.' }))));
  document.querySelector<HTMLElement>(`[data-alert="${uuid(2)}"] [data-acknowledge]`)?.click();
  await pages.until(() => document.querySelector('dialog[open] form'));
  const [dialog, form] = [document.querySelector('dialog[open]')!, document.querySelector('dialog[open] form')!];
  form.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => dialog.querySelector('fieldset')?.disabled); // with its button Cancel
  expect([dialog.getAttribute('closedby'), dialog.dispatchEvent(new Event('cancel', { cancelable: true }))]).toEqual(['none', false]);
  answer();
  await pages.until(() => pages.texts('dialog[open] [role="alert"]').length === 1 && !dialog.querySelector('fieldset')?.disabled);
  expect(dialog.dispatchEvent(new Event('cancel', { cancelable: true }))).toBe(true);
});

it('acknowledges several with one note, those of a vehicle next to each other', async () => {
  pages.close();
  const other = { vehicle_id: 2, plate_number: 'M-IM 2102' };
  const info = { severity: 'info', rule: 'service_due', facts: {} } as const;
  Object.assign(answers, of('critical'), of('warning', alert(2), alert(3, other)));
  Object.assign(answers, of('info', alert(4, info), alert(5, { ...info, ...other })));
  let refused = 1;
  for (const n of [3, 5])
    answers[`alerts/${uuid(n)}/acknowledge`] = (_: string, { body }: RequestInit) => {
      sent.push([n, JSON.parse(String(body))]);
      return n === 5 && refused-- > 0 ? new Envelope(503, { message: 'Later.' }) : alert(n, { ...other, ...seen });
    };
  pages = await openConsole(answers);
  await pages.open('#/attention', '[data-alert]');
  expect([...document.querySelectorAll<HTMLElement>('[data-alert]')].map((row) => row.dataset.alert)).toEqual([3, 5, 2, 4].map(uuid));
  await pages.press('j');
  await pages.press('x');
  await pages.press('j');
  await pages.press('x');
  await pages.until(() => pages.texts('.selected strong')[0] === '2 alerts selected');
  document.querySelector<HTMLElement>('[data-acknowledge-all]')!.click();
  await pages.until(() => document.querySelector('dialog[open] input[name="note"]'));
  expect(pages.texts('dialog[open] h2')).toEqual(['Acknowledge: 2 alerts']);
  const submit = () => document.querySelector('dialog[open] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  submit();
  await pages.until(() => pages.texts('dialog[open] [role="alert"]').length === 1);
  expect(pages.texts('dialog[open] h2')).toEqual(['Acknowledge: M-IM 2102']); // the one that was refused
  submit();
  await pages.until(() => !document.querySelector('dialog[open]') && !document.querySelector('.selected'));
  expect(sent).toEqual([[3, {}], [5, {}], [5, {}]]);
  expect(pages.texts('[data-filter="warning"]')).toEqual(['warning 1']);
});

it('is on the page of its vehicle, too', async () => {
  await pages.open('#/vehicles/1', 'ul [data-alert] [data-acknowledge]');
  expect(pages.texts('[data-alert] p')[0]).toMatch(/^Alarm of the unit: it is towed/);
  document.querySelector<HTMLElement>(`[data-alert="${uuid(2)}"] [data-acknowledge]`)?.click();
  await pages.until(() => document.querySelector('dialog[open] input[name="note"]'));
});

it.each([[1, 'vehicles/1'], [2, 'bookings/7']])('opens the notes from row %i', async (row, about) => {
  for (let n = 0; n < row; n++) await pages.press('j');
  await pages.press('n');
  await pages.until(() => document.querySelector(`dialog[open] [data-notes="${about}"] textarea`));
});

it('is calm where there is nothing', async () => {
  pages.close();
  const offline = summary(10, { connectivity: { status: 'offline', last_seen: at(0) } });
  Object.assign(answers, of('critical'), of('warning'), of('info'), { vehicles: [summary(1), summary(2), offline] });
  pages = await openConsole(answers);
  await pages.open('#/attention', '.calm');
  expect(pages.texts('.calm')).toEqual(['Nothing needs you.']);
  const [available, inUse] = ['available', 'in_use'].map((status) => pages.texts(`.numbers a[href="#/?status=${status}"]`)[0]);
  expect([available, inUse, ...pages.texts('.numbers a[href="#/?energy=charging"]')]).toEqual(['3', '0', '1']);
  await pages.until(() => pages.texts('.numbers small').join() === '1 offline'); // of those that are available
  await pages.until(() => pages.texts('.numbers > :last-child dd')[0] === '33.3 %');
});

it('says why a vehicle without a booking may move', async () => {
  answers.bookings = [];
  answers['vehicles/1/status'] = { ...(doubled['vehicles/1/status'] as object), status: 'in_use' };
  await pages.open('#/vehicles/1', '.booking strong');
  expect(pages.texts('.booking strong')).toEqual(['Its status says that it is in use: it may move without an alert.']);
});

it('counts those that are over by their rules', async () => {
  const over = { state: 'cleared', cleared_at: at(60) } as const;
  const lamp = { rule: 'lamp', facts: { lamps: ['abs'] }, ...over } as const;
  answers['alerts?state=cleared&limit=100'] = [alert(9, over), alert(8, lamp), alert(7, lamp)];
  await pages.open('#/attention?severity=info', '[data-filter="cleared"]');
  document.querySelector<HTMLElement>('[data-filter="cleared"]')!.click();
  await pages.until(() => pages.texts('button[data-rule]').join() === 'all 3,Warning lamp 2,Left open 1');
  document.querySelector<HTMLElement>('button[data-rule="left_open"]')!.click();
  await pages.until(() => pages.texts('[data-alert]').length === 1);
  expect(pages.texts('[data-alert]')[0]).toMatch(/^M-IM 2101 Left open: not locked, boot/);
  document.querySelector<HTMLElement>('[data-filter="warning"]')!.click();
  await pages.until(() => pages.texts('[data-alert]').length === 2 && location.hash === '#/attention?severity=warning');
  expect(pages.errors).toEqual([]);
});

it('rings for each critical alert once, also for those that it missed', async () => {
  const tones = vi.fn();
  const gain = { setValueAtTime() {}, exponentialRampToValueAtTime() {} };
  const node = { connect: () => node, frequency: {}, gain, start: tones, stop() {} };
  vi.stubGlobal('AudioContext', class {
    currentTime = tones.mock.calls.length * 10;
    resume = async () => void (this.currentTime = tones.mock.calls.length * 10);
    createOscillator = () => node;
    createGain = () => node;
  });
  document.querySelector<HTMLElement>('.bell')?.click();
  await vi.waitFor(() => expect(tones).toHaveBeenCalledTimes(1));
  const moved = alert(8, { severity: 'critical', rule: 'moved_without_booking', facts: { metres: 230 } });
  await pages.send('alert', { change: 'opened', alert: moved });
  await vi.waitFor(() => expect(tones).toHaveBeenCalledTimes(2));
  const [missed, known] = [alert(9, { severity: 'critical' }), alert(10, { severity: 'critical', ...seen })];
  Object.assign(answers, of('critical', moved, alert(1, { severity: 'critical' }), missed, known));
  await pages.send('reset', {});
  await vi.waitFor(() => expect(tones).toHaveBeenCalledTimes(3));
  await pages.send('reset', {});
  await pages.until(() => pages.texts('[data-filter="critical"]')[0] === 'critical 3');
  expect(tones).toHaveBeenCalledTimes(3);
  document.querySelector<HTMLElement>('.bell')?.click();
});

it('names the alert of each of its buttons', () => {
  for (const button of document.querySelectorAll('[data-alert] :is(button, .button, input)')) {
    const about = document.getElementById(button.getAttribute('aria-describedby') ?? '');
    expect(about?.closest('[data-alert]')).toBe(button.closest('[data-alert]'));
  }
});
