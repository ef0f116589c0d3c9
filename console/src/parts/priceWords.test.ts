import { expect, it } from 'vitest';
import { money } from '../money';
import { number } from '../format';
import { de } from '../texts/de';
import { en } from '../texts/en';
import { lineQuantity, tariffText } from './priceWords';

const m = (locale: string) => (amount: number) => money(amount, 'EUR', locale).replaceAll('\u00a0', ' ');
const tariff: Parameters<typeof tariffText>[0] = {
  category: 'compact', version: 3, currency: 'EUR', per_minute: 0.3, per_hour: 12, per_day: 79, per_km: 0.25, included_km: 100,
  per_pause_minute: 0.1, per_reservation_minute: 0.05, free_reservation_minutes: 15, minimum: 2, deposit: 100, plugged_in: true,
  description: '',
};

it('says a tariff in one line', () => {
  expect(tariffText(tariff, en, m('en'))).toBe(
    '€0.30 a minute, at most €12.00 an hour, at most €79.00 a day, €0.10 a minute of pause, ' +
      '€0.05 a minute of reservation after 15 min, €0.25 a km beyond 100 km a day, €2.00 at least, returned plugged in',
  );
  const hourly = {
    ...tariff, per_minute: null, per_pause_minute: null, per_reservation_minute: null, included_km: 0, minimum: null, plugged_in: false,
  };
  expect(tariffText(hourly, de, m('de'))).toBe('12,00 € je Stunde, höchstens 79,00 € je Tag, 0,25 € je km');
});

it('says how much of what a line charges', () => {
  const local = (value: number, digits?: number) => number(value, 'en', digits);
  const line = { kind: 'time', quantity: 1.5, unit: 'hour', rate: 15, amount: 22.5 } as const;
  expect(lineQuantity(line, en, m('en'), local)).toBe('1.50 h × €15.00');
  expect(lineQuantity({ ...line, quantity: 12, unit: 'minute' }, en, m('en'), local)).toBe('12 min × €15.00');
  expect(lineQuantity({ kind: 'tax', quantity: null, unit: null, rate: null, amount: 2 }, en, m('en'), local)).toBe('');
});
