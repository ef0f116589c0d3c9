// @vitest-environment happy-dom
import { afterEach, expect, it } from 'vitest';
import { session } from '../state/session.svelte';
import { alertRule, at, doubled, Envelope, openConsole, type Answers, type Pages } from './service';

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
  expect(dialog.getAttribute('closedby')).toBe('none'); // nor does a third one
  await pages.open('#/units', 'tr[data-unit]'); // nor does Back
  await pages.open('#/agencies?agency_id=1', '[data-secret]');
  expect(pages.texts('[data-secret]')).toEqual(['c0ffee']);
  document.querySelector<HTMLDialogElement>('dialog[open]')!.close();
  await pages.until(() => !document.querySelector('[data-secret]'));
  await pages.open('#/units', 'tr[data-unit]');
  await pages.open('#/agencies?agency_id=1', '[data-key="ak_1"] button');
  expect(pages.texts('[data-secret]')).toEqual([]);
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

it('shows the alert limits next to their defaults, and sends what differs from these', async () => {
  const energy = (...limits: number[]) =>
    alertRule('energy_low', { levels: limits.map((limit, n) => ({ severity: ['info', 'warning'][n], limit })) });
  const access = (limit: number) => alertRule('mass_access', { levels: [{ severity: 'critical', limit }] });
  const defaults = [alertRule('silent'), energy(20, 10), access(50), alertRule('lamp')];
  const sent: unknown[] = [];
  let others: unknown[] = []; // what another person has changed meanwhile
  await open({
    me: { ...me, agency_id: 1 },
    'agencies/1/alert-rules': (_: string, { method, body }: RequestInit) => {
      const rules = method === 'PUT' ? JSON.parse(String(body)).rules : [energy(20, 15), ...others];
      if (method === 'PUT') sent.push(rules);
      if (rules.some((r: { levels: { limit: number }[] }) => r.levels[1]?.limit === 150))
        return new Envelope(422, {
          message: 'The request is not valid.',
          error: { code: 'validation_failed' },
          errors: { 'rules[1].levels[1].limit': ['must be from 0 to 100 %'] },
        });
      const now = defaults.map((d) => rules.find((r: typeof d) => r.rule === d.rule) ?? d);
      return new Envelope(200, { data: { rules: [...now.slice(0, 2), access(60), now[3]] }, meta: { defaults } });
    },
  });
  const row = (rule: string) => `[data-rule="${rule}"]`;
  const field = (name: string) => document.querySelector<HTMLInputElement>(`[name="${name}"]`)!;
  const type = (name: string, value: string) => {
    field(name).value = value;
    field(name).dispatchEvent(new Event('input', { bubbles: true }));
  };
  const save = () =>
    document.querySelector('form:has([data-rule])')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
  await pages.until(() => document.querySelector(row('energy_low')));
  expect(pages.texts(`${row('energy_low')} small`)[0]).toContain('default: info 20 %, warning 10 %, for 10 min');
  const limit = 'energy_low.levels[1].limit';
  expect([field(limit).value, field('mass_access.levels[0].limit').disabled]).toEqual(['15', true]);

  document.querySelector<HTMLElement>(`${row('silent')} [type="checkbox"]`)!.click();
  type(limit, '150');
  save();
  await pages.until(() => pages.texts(`${row('energy_low')} .wrong`).includes('must be from 0 to 100 %'));
  type(limit, '12');
  type('energy_low.for_s', '1.5');
  others = [alertRule('lamp', { enabled: false })];
  save();
  await pages.until(() => pages.texts('form [role="status"]').includes('Saved. It holds within seconds.'));
  expect(sent[1]).toEqual([alertRule('silent', { enabled: false }), { ...energy(20, 12), for_s: 90 }, ...others]);
  expect([pages.texts('.wrong'), pages.errors]).toEqual([[], []]);
});
