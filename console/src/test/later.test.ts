// @vitest-environment happy-dom
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { booking, command, doubled, openConsole, uuid, type Answers, type Pages } from './service';

// The service of tomorrow, which a tab that is open since today calls: each word of a closed list is a new one.
const words = /^(status|state|kind|action|rule|severity|powertrain|signal_quality|outcome|step|fee|goal|protocol)$/;
const lists = /^(problems|next|warning_lamps|statuses|connectivities|powertrains|commands|signals)$/;

function ofTomorrow(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => (typeof item === 'string' && lists.test(key) ? 'of_tomorrow' : ofTomorrow(item)));
  if (typeof value === 'string') return words.test(key) ? 'of_tomorrow' : value;
  if (typeof value !== 'object' || value === null || value.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, ofTomorrow(of, name)]));
}

const transition = {
  id: uuid(7), booking_id: 1, kind: 'start', state: 'open', step: 'pay', steps: [{ name: 'pay', state: 'running', at: null }],
  next: ['wait'], needs_staff: true, error: { code: 'of_tomorrow', message: 'No.', retryable: false, outcome: null, reason: null },
  checks: [{ name: 'doors', ok: false, expected: 'closed', reported: 'open' }],
  command_id: null, requested_at: new Date(0).toISOString(), requested_by: 'zoe', override: null, ended_at: null,
};
const alert = {
  id: uuid(3), rule: 'lamp', severity: 'critical', state: 'open', summary: '', agency_id: 1, vehicle_id: 1, plate_number: 'M-IM 2101',
  person: null, booking_id: null, command_id: null, facts: { kind: 'x' }, since: new Date(0).toISOString(),
  opened_at: new Date(0).toISOString(), cleared_at: null, acknowledged_at: null, acknowledged_by: null, note: null, holder: null,
};

let pages: Pages;
beforeAll(async () => {
  localStorage.setItem('map', 'hidden');
  const today: Answers = {
    ...doubled,
    'bookings/1': booking(1, { transition: transition as never }),
    'bookings/1/transitions': [transition, { ...transition, id: uuid(6) }],
    alerts: [alert],
    'commands?bulk=': {
      ...(doubled['commands?bulk='] as object),
      items: [{ vehicle_id: 1, command: command(1), message: null, error: null }],
    },
  };
  pages = await openConsole({ ...(ofTomorrow(today) as Answers), me: doubled.me });
  await pages.until(() => pages.texts('.live').includes('Live'));
});
beforeEach(() => void pages.errors.splice(0));
afterAll(() => pages.close());

it.each([
  ['#/attention', '[data-alert]'],
  ['#/vehicles/1', '.rest .commands li'],
  [`#/bulk/${uuid(9)}`, 'tr[data-kind]'],
  ['#/bookings/1', 'tr[data-charge]'],
  ['#/charges', 'tr[data-charge]'],
  ['#/units', 'tr[data-unit]'],
])('%s shows them as they are', async (page, rows) => {
  await pages.open(page, rows);
  await pages.until(() => /of tomorrow/.test(pages.texts('main').join()));
  expect(pages.texts('main').join()).not.toMatch(/undefined|NaN|null/);
  expect(pages.errors).toEqual([]);
  expect(pages.texts('[data-failed]')).toEqual([]);
  expect(pages.texts('.live')).toEqual(['Live']);
});
