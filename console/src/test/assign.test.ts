// @vitest-environment happy-dom
import { afterEach, expect, it } from 'vitest';
import { session } from '../state/session.svelte';
import { doubled, openConsole, vehicle, type Answers, type Pages } from './service';

let pages: Pages;
afterEach(() => pages.close());

const field = (name: string) => document.querySelector<HTMLInputElement>(`dialog[open] [name="${name}"]`)!;
function set(name: string, value: string) {
  field(name).value = value;
  field(name).dispatchEvent(new Event('change', { bubbles: true }));
}

it('assigns an unknown unit to a vehicle', async () => {
  localStorage.setItem('map', 'hidden');
  const sent: unknown[] = [];
  pages = await openConsole({
    ...doubled,
    halts: [],
    'vehicles/2': (_: string, { method, body }: RequestInit) => {
      if (method === 'PATCH') sent.push(JSON.parse(String(body)));
      return vehicle(2);
    },
  });
  await pages.open('#/units?view=unknown', 'tr[data-unit] button');
  document.querySelector<HTMLElement>('tr[data-unit] button')!.click();
  await pages.until(() => field('vehicle'));
  expect(pages.requests.at(-1)).toBe('GET fleet'); // which units vehicles have now
  set('vehicle', '(#2)');
  await pages.until(() => pages.texts('dialog[open] .warn').some((text) => text.includes('unit-2')));
  set('protocol', 'ovms');
  field('vehicle').form!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => document.querySelector('[data-assigned="2"] a[href="#/vehicles/2"]'));
  expect(sent).toEqual([{ unit: 'same', protocol: 'ovms' }]);
  expect(pages.errors).toEqual([]);
});

it('has what was chosen again when the page was loaded again', async () => {
  const answers: Answers = { ...doubled, halts: [] };
  pages = await openConsole(answers);
  await pages.open('#/units?view=unknown', 'tr[data-unit] button');
  document.querySelector<HTMLElement>('tr[data-unit] button')!.click();
  await pages.until(() => field('vehicle'));
  set('vehicle', '(#2)');
  set('protocol', 'ovms');
  dispatchEvent(new PageTransitionEvent('pagehide'));
  pages.close();
  session.me = null;
  pages = await openConsole(answers);
  await pages.open('#/units?view=unknown', 'dialog[open] [name="vehicle"]');
  expect([pages.texts('dialog[open] h2')[0], field('vehicle').value, field('protocol').value]).toEqual([
    expect.stringContaining('same'), 'M-IM 2101 (#2)', 'ovms',
  ]);
});
