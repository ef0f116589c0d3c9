// @vitest-environment happy-dom
import { afterEach, expect, it, vi } from 'vitest';
import { save } from '../csv';
import { at, doubled, openConsole, type Pages } from './service';

vi.mock('../csv', async (original) => ({ ...(await original<typeof import('../csv')>()), save: vi.fn() }));

let pages: Pages;
afterEach(() => pages.close());

const entry = (id: number, action: string, parameters: unknown, note: string | null = null) => ({
  id, at: at(id), actor: 'eva', role: 'admin', agency_id: 1, vehicle_id: 1, booking_id: null, action, parameters, outcome: 'executed',
  code: null, command_id: null, request_id: null, latency_ms: 1, late: false, note,
});

it('says what changed, also in the file', async () => {
  localStorage.setItem('map', 'hidden');
  const entries = [
    entry(4, 'vehicle.change', { changes: ['vehicle 1: unit A → B', 'vehicle 1: color red → blue'] }),
    entry(3, 'booking.refund', { amount: '5.00', until: at(9) }, 'the heating was broken'),
    entry(2, 'vehicles.read', { filter: { status: 'booked' }, vehicles: 12 }),
    entry(1, 'command.lock', null),
  ];
  pages = await openConsole({ ...doubled, halts: [], activity: entries });
  await pages.open('#/activity', 'td.note');
  expect(pages.texts('td.note')).toEqual([
    'vehicle 1: unit A → B; vehicle 1: color red → blue',
    expect.stringMatching(/^the heating was broken amount 5.00, until .*Jan 2, .*:00:09$/),
    '',
    '',
  ]);
  const buttons = document.querySelectorAll<HTMLButtonElement>('main .bar button');
  buttons[buttons.length - 1]!.click();
  await pages.until(() => vi.mocked(save).mock.calls.length > 0);
  const [, first, second] = vi.mocked(save).mock.lastCall![1].split('\r\n');
  expect(first).toContain('vehicle 1: unit A → B; vehicle 1: color red → blue');
  expect(second).toContain(`"amount 5.00, until ${at(9)}",the heating was broken`);
  expect(pages.errors).toEqual([]);
});
