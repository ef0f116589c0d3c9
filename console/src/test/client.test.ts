// @vitest-environment happy-dom
import { afterEach, expect, it } from 'vitest';
import type { BookedCharge } from '../api/client';
import { at, doubled, openConsole, type Pages } from './service';

let pages: Pages;
afterEach(() => pages.close());

it('is led to from a booking and a charge, and sums what is owed by currency', async () => {
  localStorage.setItem('map', 'hidden');
  const [one, , two] = (doubled.charges as BookedCharge[]).map((c, i) => ({ ...c, id: `c${i}`, client: 'a&b c/d' }));
  const owed = [
    { ...one, state: 'declined', amount: 500 },
    { ...two, state: 'failed', amount: 20.5 },
    { ...one, id: 'd', kind: 'deposit', state: 'failed' },
    { ...one, id: 'e', state: 'requires_action', amount: 3, currency: 'CHF' },
  ];
  pages = await openConsole({
    ...doubled,
    halts: [],
    charges: (path: string) => (path.includes('client=a%26b+c%2Fd') ? owed : [one]),
    'agencies/1/clients/a%26b%20c%2Fd/payment-methods': [],
  });
  await pages.open('#/charges', 'tr[data-charge] a[href^="#/client"]');
  const address = document.querySelector('tr[data-charge] a[href^="#/client"]')!.getAttribute('href')!;
  await pages.open(address, 'main [data-owed]');
  expect(pages.texts('main h1')).toEqual(['a&b c/d']);
  expect(pages.texts('[data-owed]')[0]).toMatch(/^.?520[.,]50.*CHF.?3[.,]00$/);
  expect(pages.texts('tr[data-charge]')).toHaveLength(3);
  expect(pages.texts('main .bar span')).toEqual(['agency 1: Isar']);
  expect(pages.errors).toEqual([]);
});

it('shows nothing of one client as that of another', async () => {
  localStorage.setItem('map', 'hidden');
  const card = { id: 1, brand: 'visa', last_four: '4242', exp_month: 2, exp_year: 2030, is_default: true, created_at: at(0) };
  let answer = () => {};
  pages = await openConsole({
    ...doubled,
    halts: [],
    'agencies/1/clients/anna/payment-methods': () => new Promise((resolve) => (answer = () => resolve([card]))),
    'agencies/1/clients/ben/payment-methods': [],
    charges: (path: string) => (path.includes('client=anna') ? [{ ...(doubled.charges as BookedCharge[])[0], state: 'failed' }] : []),
  });
  await pages.open('#/client?agency_id=1&client=anna', 'tr[data-charge]');
  await pages.open('#/client?agency_id=1&client=ben', 'main h1');
  expect([pages.texts('main h1'), pages.texts('tr[data-charge]')]).toEqual([['ben'], []]);
  await pages.until(() => pages.texts('main li').includes('none'));
  answer();
  await new Promise((done) => setTimeout(done, 50));
  expect(pages.texts('main li')).toEqual(['none']);
  await pages.open('#/client?agency_id=1&client=anna', 'main h1');
  answer();
  await pages.until(() => pages.texts('main li').some((text) => text.startsWith('Visa •••• 4242')));
});
