import { expect, it } from 'vitest';
import type { Charge } from './api/client';
import { amountText, decimals, money, parseAmount, refundable, refundParts } from './money';

const charge = (change: Partial<Charge>) =>
  ({
    id: 'a',
    kind: 'start',
    state: 'paid',
    currency: 'EUR',
    amount: 0,
    settled: change.amount ?? 0,
    refund_of: null,
    ...change,
  }) as Charge;

it.each([
  [142.8, 'EUR', 'en', '€142.80'],
  [142.8, 'EUR', 'de', '142,80 €'],
  [1500, 'JPY', 'en', '¥1,500'],
  [1320.5, 'HUF', 'en', 'HUF 1,320.50'],
  [1320.5, 'HUF', 'de', '1.320,50 HUF'],
  [12.345, 'IQD', 'en', 'IQD 12.345'],
  [12.345, 'BHD', 'de', '12,345 BHD'],
])('writes %s %s in %s as %s', (amount, currency, locale, want) =>
  expect(money(amount, currency, locale).replaceAll('\u00a0', ' ')).toBe(want),
);

it.each([
  ['12,50', 'EUR', 12.5],
  [' 12.5 ', 'EUR', 12.5],
  ['12', 'JPY', 12],
  ['0.005', 'BHD', 0.005],
  ['1320,50', 'HUF', 1320.5],
  ['12.345', 'IQD', 12.345],
  ['12.3456', 'IQD', null],
  ['12.505', 'EUR', null],
  ['12.5', 'JPY', null],
  ['1.234,50', 'EUR', 1234.5],
  ['12.345,678', 'BHD', 12345.678],
  ['1.234', 'EUR', null],
  ['1.23,50', 'EUR', null],
  ['1,234,50', 'EUR', null],
  ['1234.567,50', 'EUR', null],
  ['12,50 CHF', 'EUR', null],
  ['-1', 'EUR', null],
  ['', 'EUR', null],
  ['1e2', 'EUR', null],
])('reads %j %s as %s', (text, currency, want) => expect(parseAmount(text, currency)).toBe(want));

it.each([
  [1234.5, 'EUR', 'de', '1234,50'],
  [1320.5, 'HUF', 'en', '1320.50'],
  [1500, 'JPY', 'en', '1500'],
  [12.345, 'BHD', 'de', '12,345'],
  [12.34, 'IQD', 'en', '12.340'],
])('suggests %s %s in %s as %s, and reads it', (amount, currency, locale, want) => {
  expect(amountText(amount, currency, locale)).toBe(want);
  expect(parseAmount(want, currency)).toBe(amount);
});

it.each([
  [1234567.5, 'EUR', 'de'],
  [1234.5, 'EUR', 'en-GB'],
  [1320.5, 'HUF', 'en'],
  [12.345, 'BHD', 'de'],
])('reads %s %s as pages in %s write it', (value, currency, locale) =>
  expect(parseAmount(money(value, currency, locale), currency)).toBe(value),
);

it('has the decimals of the service, not of the browser', () => {
  expect(['EUR', 'HUF', 'JPY', 'BHD', 'IQD'].map(decimals)).toEqual([2, 2, 0, 3, 3]);
});

it('gives back what was taken, once', () => {
  const paid = charge({ id: 'a', amount: 142.8 });
  const refund = (state: Charge['state'], amount: number) => charge({ id: 'r', kind: 'refund', state, amount, refund_of: 'a' });
  expect(refundable(paid, [paid])).toBe(142.8);
  expect(refundable(paid, [paid, refund('pending', 0.1), refund('paid', 0.2)])).toBe(142.5);
  expect(refundable(paid, [paid, refund('failed', 20)])).toBe(142.8);
  expect(refundable(charge({ state: 'declined', amount: 5 }), [])).toBe(0);
  expect(refundable(charge({ kind: 'deposit', state: 'captured', amount: 200, settled: 50 }), [])).toBe(50);
  expect(refundable(charge({ kind: 'deposit', state: 'authorized', amount: 200 }), [])).toBe(0);
  const forint = charge({ id: 'f', currency: 'HUF', amount: 1320.5 });
  expect(refundable(forint, [forint, charge({ kind: 'refund', currency: 'HUF', amount: 0.25, refund_of: 'f' })])).toBe(1320.25);
});

it('divides a refund from the newest charge on', () => {
  const charges = [
    charge({ id: 'a', amount: 142.8 }),
    charge({ id: 'b', kind: 'deposit', state: 'authorized', amount: 200 }),
    charge({ id: 'c', kind: 'extension', amount: 71.4 }),
  ];
  expect(refundParts(charges, 80).map((p) => [p.charge.id, p.amount])).toEqual([
    ['c', 71.4],
    ['a', 8.6],
  ]);
  expect(
    refundParts([...charges, charge({ id: 'r', kind: 'refund', state: 'unknown', amount: 71.4, refund_of: 'c' })], 0.1).map(
      (p) => p.charge.id,
    ),
  ).toEqual(['a']);
  expect(refundParts(charges, 80, charges[0]).map((p) => [p.charge.id, p.amount])).toEqual([['a', 80]]);
  expect(refundParts([], 1)).toEqual([]);
});
