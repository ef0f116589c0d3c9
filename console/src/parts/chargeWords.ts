// What a charge is for, how it stands and why it was made, in words.
import type { Activity, AdminBooking, Charge } from '../api/client';
import { causeOf, endOfDeposit, twinOf } from '../state/bookingStory';
import type { Texts } from '../texts/en';

/** How amounts and times are written. */
export interface Writing {
  texts: Texts;
  money(amount: number): string;
  time(at: string): string;
}

/** The name of a charge among those of its booking: Rental, Extension 2, Fee 2: cleaning, Refund of Rental. */
export function nameOf(c: Charge, texts: Texts, charges: Charge[] = []): string {
  const words = texts.charges;
  switch (c.kind) {
    case 'fee':
      return words.fee(words.fees[c.fee ?? ''] ?? c.fee ?? '', charges.some((x) => x.kind === 'fee' && x.id !== c.id) ? c.number : null);
    case 'extension':
      return words.numbered(words.kinds.extension, c.number);
    case 'refund': {
      const of = charges.find((x) => x.id === c.refund_of);
      return of ? words.refundOf(nameOf(of, texts, charges)) : words.numbered(words.kinds.refund, c.number);
    }
    default:
      return words.kinds[c.kind];
  }
}

export function stateName(c: Charge, state: Charge['state'], texts: Texts): string {
  if (c.kind === 'refund' && state === 'paid') return texts.charges.refunded;
  if (c.kind === 'refund' && state === 'failed') return texts.charges.refundFailed;
  return texts.charges.state[state];
}

/** How a charge stands, and why the bank or the processor refused, in words where they are known. */
export function stateText(c: Charge, state: Charge['state'], code: string | null, texts: Texts): string {
  const name = stateName(c, state, texts);
  // That its owner must confirm is the name of the state.
  return code === null || state === 'requires_action' ? name : `${name}: ${texts.charges.codes[code] ?? code}`;
}

export function who(entry: Activity | undefined, charge: Charge | null, texts: Texts): string {
  if (entry) return (texts.booking.who[entry.role] ?? String)(entry.actor);
  return charge?.requested_by ?? texts.booking.someone;
}

/** What caused a charge, by whom, and what it means for the client. */
export function whyOf(c: Charge, booking: AdminBooking, entries: Activity[], w: Writing): string {
  const why = w.texts.booking.why;
  const cause = causeOf(c, entries);
  // Of a deposit, the charge itself has who decided last what becomes of it.
  const by = who(cause, c.kind === 'deposit' && c.goal !== 'hold' ? null : c, w.texts);
  switch (c.kind) {
    case 'start':
      return c.state !== 'released' ? why.start(by) : isOfFailedStart(c, booking) ? why.notStarted : why.takenBack;
    case 'extension': {
      if (c.state === 'released') return why.takenBack;
      const end = cause?.parameters?.end_date;
      return why.extension(by, typeof end === 'string' ? w.time(end) : '');
    }
    case 'end':
      return c.state === 'released' ? why.takenBack : why.end(by);
    case 'fee':
      return why.fee(by);
    case 'refund':
      return why.refund(by, booking.charges.find((x) => x.id === c.refund_of)?.card ?? c.card ?? '');
    default:
      if (c.goal === 'release' && isOfFailedStart(c, booking)) return why.notStarted;
      return deposit(c, by, who(endOfDeposit(c, entries), c, w.texts), w);
  }
}

/** Whether a charge was of a start that failed: a booking has others for each start. */
const isOfFailedStart = (c: Charge, { actual_start, charges }: AdminBooking): boolean =>
  !actual_start || charges.some((x) => x.kind === c.kind && x.number > c.number);

function deposit(c: Charge, by: string, last: string, w: Writing): string {
  const why = w.texts.booking.why;
  const held = c.state === 'authorized' || c.state === 'unknown';
  if (c.state === 'captured') return why.captured(last, w.money(c.settled), w.money(c.amount));
  if (c.state === 'released') return c.decline_code ? why.lost : c.attempts === 0 ? why.never(last) : why.released(last);
  if (held && c.goal === 'capture') return why.capturing(last, w.money(c.capture_amount ?? 0));
  if (c.goal === 'release') return why.releasing(last);
  return c.state === 'authorized' ? why.deposit(by) : why.wanted(by);
}

/** Warns of a second charge for the same; empty: there is none. */
export function twinText(c: Charge, charges: Charge[], texts: Texts): string {
  const twin = twinOf(c, charges);
  return twin ? texts.booking.why.twin(nameOf(twin, texts, charges)) : '';
}
