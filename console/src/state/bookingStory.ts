// What happened of a booking, in order: requests, the vehicle's commands, and what became of money.
import type { Activity, AdminBooking, Charge, Command } from '../api/client';
import { refundable } from '../money';

/** How a thing went, for its colour and shape. */
export type Tone = 'good' | 'bad' | 'warn' | 'open' | 'plain';

/** What a thing is about, which is the lane in which it is drawn; booking: none. */
export type Subject = 'booking' | 'client' | 'others' | 'payments' | 'fees' | 'deposit' | 'refunds';

export interface Happening {
  at: string;
  subject: Subject;
  tone: Tone;
  kind: 'request' | 'refused' | 'repeated' | 'command' | 'charge' | 'next' | 'agreedStart' | 'agreedEnd';
  /** It has not come yet. */
  ahead: boolean;
  entry?: Activity;
  command?: Command;
  charge?: Charge;
  /** What became of the charge. */
  state?: Charge['state'];
}

const requestOf: Partial<Record<Charge['kind'], string[]>> = {
  start: ['booking.start', 'rental.start'],
  deposit: ['booking.start', 'rental.start'],
  extension: ['booking.extend'],
  end: ['booking.end', 'rental.end'],
  fee: ['booking.fee'],
  refund: ['booking.refund'],
};
const subjectOf = {
  start: 'payments',
  extension: 'payments',
  end: 'payments',
  fee: 'fees',
  deposit: 'deposit',
  refund: 'refunds',
} as const;
export const toneOf: Record<Charge['state'], Tone> = {
  pending: 'open',
  unknown: 'warn',
  requires_action: 'warn',
  declined: 'bad',
  failed: 'bad',
  authorized: 'good',
  paid: 'good',
  captured: 'good',
  released: 'plain',
  waived: 'plain',
};
// A charge is written with its request, whose entry may have been made a moment before.
const sameWithin = 5000;

const time = (at: string) => Date.parse(at);
const isDone = (e: Activity) => e.outcome === 'executed' && e.code === null;

/** The request that made a charge; undefined: its entry is not in the audit log any more. */
export function causeOf(charge: Charge, entries: Activity[]): Activity | undefined {
  // The entry of a start is written at its end, and the charge at its beginning.
  const made = (e: Activity) => time(e.at) - (e.action === 'rental.start' ? (e.latency_ms ?? 0) : 0);
  const distance = (e: Activity) => Math.abs(made(e) - time(charge.created_at));
  const requests = requestOf[charge.kind] ?? []; // of a later version it may be any
  return entries
    .filter((e) => requests.includes(e.action) && isDone(e) && distance(e) <= sameWithin)
    .sort((a, b) => distance(a) - distance(b))[0];
}

/** The request by which a deposit was taken, in part, or released; undefined: there is none yet. */
export function endOfDeposit(deposit: Charge, entries: Activity[]): Activity | undefined {
  const actions: Record<string, string[]> = { capture: ['booking.deposit_capture'], release: ['booking.end', 'rental.end'] };
  return entries.find((e) => actions[deposit.goal ?? '']?.includes(e.action) && isDone(e));
}

/** What became of a charge, time after time; the last one is how it is now. */
export function triesOf(charge: Charge, entries: Activity[]): { at: string; state: Charge['state']; code: string | null }[] {
  const tries = entries
    .filter((e) => e.action === `charge.${charge.kind}` && e.parameters?.number === charge.number)
    .map((e) => ({
      at: e.at,
      state: e.parameters?.state as Charge['state'],
      code: (e.parameters?.decline_code as string | undefined) ?? null,
    }))
    .sort((a, b) => time(a.at) - time(b.at));
  // What has no entry: it is to be done, was free, or the entry was removed since.
  if (tries.at(-1)?.state !== charge.state) {
    tries.push({ at: charge.paid_at ?? tries.at(-1)?.at ?? charge.created_at, state: charge.state, code: charge.decline_code });
  }
  return tries;
}

/** Another charge for the same thing and the same amount, where both have taken money that is not back. */
export function twinOf(charge: Charge, charges: Charge[]): Charge | undefined {
  const isSame = (c: Charge) => c.id !== charge.id && c.kind === charge.kind && c.fee === charge.fee && c.amount === charge.amount;
  return charges.find((c) => isSame(c) && [c, charge].every((x) => refundable(x, charges) > 0));
}

/** How a command went. */
export function toneOfCommand(c: Command): Tone {
  if (c.state === 'unknown') return 'warn';
  if (c.completed_at === null) return 'open';
  return c.state === 'succeeded' ? 'good' : 'bad';
}

/** Tells what is known of a booking at a time. Entries are those of the audit log that are about it. */
export function bookingStory(booking: AdminBooking, entries: Activity[], commands: Command[], now: number): Happening[] {
  const all: Happening[] = [];
  const add = (h: Omit<Happening, 'ahead'>) => all.push({ ...h, ahead: time(h.at) > now });
  add({ at: booking.start_date, subject: 'booking', tone: 'plain', kind: 'agreedStart' });
  add({ at: booking.end_date, subject: 'booking', tone: 'plain', kind: 'agreedEnd' });
  for (const command of commands) {
    add({
      at: command.requested_at,
      subject: command.booking_id === booking.id ? 'client' : 'others',
      tone: toneOfCommand(command),
      kind: 'command',
      command,
    });
  }
  for (const entry of entries) {
    const subject = entry.action.startsWith('command.') ? 'client' : 'booking';
    if (!/^(booking|rental)\./.test(entry.action) && subject !== 'client') continue; // what became of charges follows
    if (commands.some((c) => c.id === entry.command_id)) continue;
    if (entry.code === 'idempotency_replayed') add({ at: entry.at, subject: 'booking', tone: 'plain', kind: 'repeated', entry });
    else if (isDone(entry)) add({ at: entry.at, subject, tone: 'good', kind: 'request', entry });
    else add({ at: entry.at, subject, tone: entry.outcome === 'unknown' ? 'warn' : 'bad', kind: 'refused', entry });
  }
  for (const charge of booking.charges) {
    const subject = subjectOf[charge.kind] ?? 'payments';
    for (const { at, state } of triesOf(charge, entries)) add({ at, subject, tone: toneOf[state], kind: 'charge', charge, state });
    if (charge.state === 'declined' && charge.next_attempt_at)
      add({ at: charge.next_attempt_at, subject, tone: 'open', kind: 'next', charge });
  }
  return all.sort((a, b) => time(a.at) - time(b.at));
}
