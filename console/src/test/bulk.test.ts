// @vitest-environment happy-dom
import { afterEach, expect, it } from 'vitest';
import type { BulkCommand } from '../api/client';
import { doubled, openConsole, uuid, type Pages } from './service';

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
