// What a price consists of, in words.
import type { AdminBooking } from '../api/client';
import type { Texts } from '../texts/en';

type Pricing = AdminBooking['pricing'];
type Tariff = NonNullable<Pricing['tariff']>;
type Money = (amount: number) => string;

/** How much of what a line charges: 8 h × €15.00; empty: it has an amount alone. */
export function lineQuantity(
  { quantity, unit, rate }: Pricing['lines'][number],
  texts: Texts,
  money: Money,
  number: (value: number, digits?: number) => string,
): string {
  if (quantity === null || unit === null || rate === null) return '';
  return `${number(quantity, Number.isInteger(quantity) ? 0 : 2)} ${texts.price.units[unit]} × ${money(rate)}`;
}

/** A tariff in one line: €0.30 a minute, at most €12.00 an hour, at most €79.00 a day. */
export function tariffText(tariff: Tariff, texts: Texts, money: Money): string {
  const words = texts.price;
  const rates = (['minute', 'hour', 'day'] as const).flatMap((unit) => {
    const rate = tariff[`per_${unit}`];
    return rate === null ? [] : [`${money(rate)} ${words.per[unit]}`];
  });
  const { per_km, included_km, per_pause_minute, per_reservation_minute, free_reservation_minutes: free, minimum } = tariff;
  return [
    ...rates.map((rate, i) => (i === 0 ? rate : words.most(rate))),
    ...(per_pause_minute === null ? [] : [`${money(per_pause_minute)} ${words.per.pause}`]),
    ...(per_reservation_minute === null ? [] : [`${money(per_reservation_minute)} ${words.per.reservation} ${words.after(free)}`]),
    ...(per_km === null ? [] : [`${money(per_km)} ${words.per.km}${included_km > 0 ? ` ${words.beyond(included_km)}` : ''}`]),
    ...(minimum === null ? [] : [words.least(money(minimum))]),
    ...(tariff.plugged_in ? [words.pluggedIn] : []),
  ].join(', ');
}
