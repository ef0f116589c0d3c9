// Amounts of money: as the language writes them, and computed in whole minor units.
import type { Charge } from './api/client';
import currencies from './currencies.json';

/** An amount, as a language writes it: €12.50; 12,50 €. */
export function money(amount: number, currency: string, locale: string): string {
  const digits = decimals(currency);
  return new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(amount);
}

/** The currencies that do not have two decimals, as the service has them: see TestDigits_AreThoseOfTheConsole. */
const notTwo: Readonly<Record<string, number>> = currencies;

/** How many decimals amounts of a currency have. Browsers leave out those of some currencies, which the service charges. */
export const decimals = (currency: string): number => notTwo[currency] ?? 2;

export const toMinor = (amount: number, currency: string) => Math.round(amount * 10 ** decimals(currency));
export const fromMinor = (minor: number, currency: string) => minor / 10 ** decimals(currency);

// With the currency or without; thousands are apart only where the decimals follow: 1.234 alone could be either.
const amountPattern = /^[\s\p{Sc}]*(\d{1,10}|\d{1,3}(?:\.\d{3})+(?=,)|\d{1,3}(?:,\d{3})+(?=\.))(?:[.,](\d+))?[\s\p{Sc}]*$/u;

/** The amount that a person has typed, or copied, with a comma or a point; null: it is none of this currency. */
export function parseAmount(text: string, currency: string): number | null {
  const found = text.replace(currency, '').match(amountPattern);
  if (!found || (found[2] ?? '').length > decimals(currency)) return null;
  return Number(`${found[1]!.replace(/\D/g, '')}.${found[2] ?? '0'}`);
}

/** The text of an amount in a field, with all decimals and without the currency. */
export function amountText(amount: number, currency: string, locale: string): string {
  const digits = decimals(currency);
  return new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false }).format(amount);
}

/** Whether a charge has taken money. */
export const isTaken = (c: Charge) =>
  (['start', 'extension', 'end', 'fee'].includes(c.kind) && c.state === 'paid') || c.state === 'captured';

/** What of a charge can still be given back. */
export function refundable(c: Charge, charges: Charge[]): number {
  if (!isTaken(c)) return 0;
  const minor = (amount: number) => toMinor(amount, c.currency);
  const back = charges
    .filter((r) => r.refund_of === c.id && r.state !== 'failed')
    .reduce((sum, r) => sum + minor(r.state === 'paid' ? r.settled : r.amount), 0);
  return fromMinor(Math.max(0, minor(c.settled) - back), c.currency);
}

/** How a refund is divided: of one charge, or from the newest on; each goes back to the card that paid it. */
export function refundParts(charges: Charge[], amount: number, only: Charge | null = null): { charge: Charge; amount: number }[] {
  const currency = charges[0]?.currency ?? 'EUR';
  let left = toMinor(amount, currency);
  const parts: { charge: Charge; amount: number }[] = [];
  for (const charge of [...charges].reverse()) {
    if (only && charge.id !== only.id) continue;
    const part = Math.min(left, toMinor(refundable(charge, charges), currency));
    if (part <= 0) continue;
    parts.push({ charge, amount: fromMinor(part, currency) });
    left -= part;
  }
  return parts;
}
