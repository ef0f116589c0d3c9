// @vitest-environment happy-dom
import { afterEach, expect, it } from 'vitest';
import { session } from '../state/session.svelte';
import { at, doubled, openConsole, type Answers, type Pages } from './service';

let pages: Pages;
afterEach(() => pages.close());

const key = (id: string, change: object = {}) => ({
  id, agency_id: 1, agency_code: 'A', state: 'active', retires_at: null, created_at: at(0), ...change,
});
const me = { subject: 'zoe', role: 'admin', level: 'administrator', agency_id: null, scopes: ['agency_keys'] };
const open = async (change: Answers = {}) => {
  localStorage.setItem('map', 'hidden');
  session.me = null;
  pages = await openConsole({ ...doubled, halts: [], me, ...change });
  await pages.open('#/agencies?agency_id=1', '[data-station]');
};
async function confirm(button: string) {
  document.querySelector<HTMLElement>(button)!.click();
  await pages.until(() => document.querySelector('dialog[open] form'));
  const until = document.querySelector<HTMLInputElement>('dialog[open] [name="until"]');
  if (until) {
    until.value = '2126-03-01T18:00';
    until.dispatchEvent(new Event('input', { bubbles: true }));
  }
  document.querySelector('dialog[open] form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
}

it('makes a key, whose secret it shows once, and retires and revokes others', async () => {
  const sent: unknown[] = [];
  let keys = [key('ak_1')];
  const change = (state: string) => (_: string, { body }: RequestInit) => {
    sent.push([state, body && JSON.parse(String(body))]);
    keys = [key('ak_1', { state })];
    return keys[0];
  };
  await open({
    'agencies/1/keys': (_: string, { method }: RequestInit) => {
      if (method !== 'POST') return keys;
      keys = [...keys, key('ak_2')];
      return { ...key('ak_2'), secret: 'c0ffee' };
    },
    'agencies/1/keys/ak_1/retire': change('retiring'),
    'agencies/1/keys/ak_1/revoke': change('revoked'),
  });
  await pages.until(() => pages.texts('[data-key]').length === 1);
  await confirm('[data-action="add-key"]');
  await pages.until(() => pages.texts('[data-secret]').includes('c0ffee') && pages.texts('[data-key]').length === 2);
  const dialog = document.querySelector<HTMLDialogElement>('dialog[open]')!;
  expect(dialog.dispatchEvent(new Event('cancel', { cancelable: true }))).toBe(false); // Escape loses no secret
  dialog.close();
  await pages.until(() => !document.querySelector('[data-secret]'));
  await confirm('[data-key="ak_1"] button');
  await pages.until(() => document.querySelector('[data-state="retiring"]'));
  await confirm('[data-key="ak_1"] button:last-child');
  await pages.until(() => document.querySelector('[data-state="revoked"]'));
  expect(document.querySelector('[data-key] button')).toBeNull();
  expect(sent).toEqual([['retiring', { until: new Date('2126-03-01T18:00').toISOString() }], ['revoked', undefined]]);
  expect(pages.errors).toEqual([]);
});

it('reads no keys for those who may not see them', async () => {
  await open({ me: { ...me, scopes: [] } });
  await pages.until(() => session.me);
  expect(pages.texts('main p')).toContain('Only those who have the scope agency_keys see the keys.');
  expect(pages.requests.filter((r) => r.includes('/keys'))).toEqual([]);
});
