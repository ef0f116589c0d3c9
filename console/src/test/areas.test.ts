// @vitest-environment happy-dom
import { tick } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Me } from '../api/client';
import { session } from '../state/session.svelte';
import { at, doubled, openConsole, type Answers, type Pages } from './service';

const polygon = { type: 'Polygon', coordinates: [[[11.5, 48.1], [11.6, 48.1], [11.6, 48.2], [11.5, 48.1]]] };
const area = (name: string, kind: string, geometry: object = polygon) => ({ name, kind, geometry, points: 4, changed_at: at(0) });

let pages: Pages;
let answers: Answers;
let sent: { method: string; path: string; body: unknown; match: string }[];

beforeEach(() => {
  localStorage.setItem('map', 'shown');
  // happy-dom draws on no canvas: there is no map, and areas are written.
  const canvas: Record<string | symbol, unknown> = { measureText: () => ({ width: 0 }) };
  const context = new Proxy(canvas, { get: (all, name) => all[name] ?? (() => {}), set: () => true });
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockImplementation(((kind: string) => (kind === '2d' ? context : null)) as never);
  vi.spyOn(HTMLCanvasElement.prototype, 'toDataURL').mockReturnValue('data:,');
  sent = [];
  const one = (path: string, init: RequestInit) => {
    if (init.method === 'PUT' || init.method === 'DELETE') {
      const headers = init.headers as Record<string, string>;
      sent.push({ method: init.method, path, body: init.body && JSON.parse(String(init.body)), match: headers['If-Match'] ?? '' });
    }
    return area('centre', 'operating');
  };
  answers = {
    ...doubled,
    halts: [],
   
    stations: null,
    'agencies/1/areas': [area('centre', 'operating'), area('market', 'no_parking')],
    'agencies/1/areas/centre': one,
    'agencies/1/areas/harbour': one,
    'agencies/2/areas': [],
  };
});
afterEach(() => {
  pages.close();
  vi.restoreAllMocks();
});

const open = async (level = 'administrator', hash = '#/?agency=1') => {
  answers.me = { subject: 'zoe', role: 'admin', level, agency_id: null, scopes: [] };
  session.me = answers.me as Me; // that of the last test is kept
  pages = await openConsole(answers);
  await pages.open(hash, '.about');
};
const button = (text: string) => [...document.querySelectorAll('button')].find((b) => b.textContent?.trim() === text);
const click = async (text: string) => {
  await pages.until(() => button(text));
  button(text)!.click();
  await tick();
};
const type = async (selector: string, value: string) => {
  const field = document.querySelector<HTMLInputElement>(selector)!;
  field.value = value;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  field.dispatchEvent(new Event('change', { bubbles: true }));
  await tick();
};

it('an operator sees the areas of the chosen agency, and changes none', async () => {
  await open('operator');
  await pages.until(() => document.querySelector('[data-areas="2"]'));
  expect(pages.texts('.fleet ul li').filter((text) => text.includes('ental'))).toEqual(['Rentals may end here', 'No rental ends here']);
  expect(button('Areas')).toBeUndefined();
});

it('an area is added', async () => {
  await open();
  await click('Areas');
  await pages.until(() => pages.texts('[data-area]').length === 2);
  await click('New area');
  await pages.until(() => document.activeElement?.tagName === 'INPUT');
  expect(button('Save')!.disabled).toBe(true);
  await type('form input', 'centre');
  expect(pages.texts('form [role="alert"]')[0]).toMatch(/There is an area of this name/);
  await type('form input', 'harbour');
  await type('form textarea', '{"type":"Point"}');
  expect(pages.texts('form [role="alert"]')[0]).toMatch(/no GeoJSON Polygon/);
  expect(button('Save')!.disabled).toBe(true);
  await type('form textarea', JSON.stringify({ type: 'Feature', geometry: polygon }));
  await type('form select', 'end_only');
  await click('Save');
  await pages.until(() => pages.texts('section [role="status"]')[0] === 'The area harbour is in force.');
  expect(sent).toEqual([
    { method: 'PUT', path: 'agencies/1/areas/harbour', body: { kind: 'end_only', geometry: polygon }, match: '' },
  ]);
  expect(document.querySelector('form[data-editing]')).toBeNull();
});

it('an area is changed, and removed after a question', async () => {
  await open();
  await click('Areas');
  await click('centre');
  await pages.until(() => document.querySelector('form[data-editing="centre"]'));
  expect(document.querySelector<HTMLInputElement>('form input')!.disabled).toBe(true);
  await type('form select', 'no_parking');
  await click('Save');
  await pages.until(() => sent.length === 1);
  expect(sent[0]).toMatchObject({ method: 'PUT', body: { kind: 'no_parking', geometry: polygon } });
  await click('centre');
  await pages.until(() => document.querySelector('form[data-editing="centre"]'));
  await click('Remove');
  await pages.until(() => document.querySelector('dialog[open]'));
  expect(sent).toHaveLength(1);
  document.querySelector<HTMLButtonElement>('dialog[open] button.danger')!.click();
  await pages.until(() => sent.length === 2);
  expect(sent[1]).toMatchObject({ method: 'DELETE', path: 'agencies/1/areas/centre' });
  await pages.until(() => pages.texts('section [role="status"]')[0] === 'The area centre is removed.');
});

it('a late answer replaces nothing that was chosen since', async () => {
  await open();
  let answer = () => {};
  answers['agencies/1/areas/centre'] = () => new Promise((resolve) => (answer = () => resolve(area('centre', 'operating'))));
  await click('Areas');
  await click('centre');
  await click('New area');
  await pages.until(() => document.querySelector('form[data-editing=""]'));
  await type('form input', 'harbour');
  answer();
  await new Promise((done) => setTimeout(done, 50));
  expect(document.querySelector<HTMLInputElement>('form[data-editing=""] input')?.value).toBe('harbour');
});

it('a refusal is said, and what was typed stays', async () => {
  await open();
  answers['agencies/1/areas/harbour'] = null;
  await click('Areas');
  await click('New area');
  await type('form input', 'harbour');
  await type('form textarea', JSON.stringify(polygon));
  await click('Save');
  await pages.until(() => pages.texts('section > [role="alert"]').length === 1);
  expect(document.querySelector<HTMLInputElement>('form input')!.value).toBe('harbour');
});

it('another agency has other areas, and without one there are none', async () => {
  await open('administrator', '#/');
  await click('Areas');
  expect(pages.texts('.fleet > p')).toContain('Choose an agency to see its areas.');
  await pages.open('#/?agency=1', '[data-area="centre"]');
  await click('New area');
  await pages.open('#/?agency=2', '[data-areas="0"]');
  await pages.until(() => pages.texts('.none').length === 1);
  expect(document.querySelector('form[data-editing]')).toBeNull();
});
