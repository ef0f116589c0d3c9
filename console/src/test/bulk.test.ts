// @vitest-environment happy-dom
import { afterEach, expect, it } from 'vitest';
import type { BulkCommand } from '../api/client';
import { command, doubled, openConsole, uuid, type Pages } from './service';

let pages: Pages;
afterEach(() => pages.close());

it('orders again what vehicles have not done, with the same parameters', async () => {
  localStorage.setItem('map', 'hidden');
  sessionStorage.clear();
  const sent: unknown[] = [];
  const done = doubled['commands?bulk='] as BulkCommand;
  const horn = { ...done, action: 'attention', parameters: { signal: 'horn', duration_ms: 1000 } };
  pages = await openConsole({
    ...doubled,
    halts: [],
    'commands?bulk=': horn,
    commands: (_: string, { body }: RequestInit) => {
      sent.push(JSON.parse(String(body)));
      return { ...horn, id: uuid(8) };
    },
  });
  await pages.open('#/commands', 'a[href="#/bulk"]');
  await pages.open('#/bulk', 'tr[data-bulk]');
  expect(pages.texts('tr[data-bulk]')[0]).toMatch(/Lock: 2 vehicles1 done, 1 not donezoe$/);
  await pages.open(`#/bulk/${uuid(9)}`, '[data-action="retry"]');
  sent.length = 0;
  document.querySelector<HTMLElement>('[data-action="retry"]')!.click();
  await pages.until(() => document.querySelector('dialog[open] form'));
  document.querySelector('dialog[open] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => location.hash === `#/bulk/${uuid(8)}`);
  expect(sent).toEqual([{ action: 'attention', vehicle_ids: [2], parameters: { signal: 'horn', duration_ms: 1000 } }]);
  expect(pages.errors).toEqual([]);
});

it('says a cause once, and shows the doors as the answer confirms them', async () => {
  const done = doubled['commands?bulk='] as BulkCommand;
  const completed_at = new Date(Date.now() - 5000).toISOString();
  const failed = command(2, { vehicle_id: 2, state: 'failed', outcome: 'failed', reason: 'door_lock_fault', completed_at });
  pages = await openConsole({
    ...doubled,
    'commands?bulk=': {
      ...done,
      items: [
        { vehicle_id: 1, command: command(1, { completed_at, reported: { telemetry: { is_locked: true } } }), message: null, error: null },
        { vehicle_id: 2, command: failed, message: 'No.', error: { code: 'command_failed', reason: 'door_lock_fault', detail: null } },
      ],
    },
  });
  await pages.open(`#/bulk/${uuid(9)}`, 'td.now .reported');
  expect(pages.texts('td.now')[0]).toMatch(/^locked \d+ s ago$/);
  expect(pages.texts('td.why')).toEqual([
    '',
    'The vehicle tried, and failed. (the door lock does not move: it is jammed or broken) ' +
      'Look at its state before you send it again; if it fails again, send a mechanic.',
  ]);
});
