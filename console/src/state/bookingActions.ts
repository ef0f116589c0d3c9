// What may be done to a booking, and why not.
import type { AdminBooking, Me, Transition } from '../api/client';
import type { Texts } from '../texts/en';
import { openOf } from './rental';

/** What the vehicle takes part in: it goes on until that has done it. */
export type Move = 'rental/start' | 'rental/pause' | 'rental/resume' | 'rental/end' | 'override' | 'giveUp' | 'overrideStart';
/** Those, and what changes the booking alone. */
export type Change = 'start' | 'end' | 'extend' | 'vehicle' | 'cancel' | 'refund' | 'capture' | 'fee' | Move;

const byStatus: Partial<Record<AdminBooking['status'], Change[]>> = {
  upcoming: ['start', 'extend', 'vehicle', 'cancel'],
  active: ['end', 'extend'],
};

/** What else a booking has buttons for: what its state excludes has none. */
export function changesOf({ status, payment, limits, charges }: AdminBooking): Change[] {
  const isCaptured = charges.some((c) => c.kind === 'deposit' && c.goal === 'capture');
  return [
    ...(byStatus[status] ?? []),
    ...(payment.charged > 0 ? (['refund'] as const) : []),
    ...(limits.capture > 0 || isCaptured ? (['capture'] as const) : []),
    ...(limits.fee > 0 ? (['fee'] as const) : []),
  ];
}

/** The moves that a booking has buttons for. */
export function movesOf(booking: AdminBooking): Move[] {
  const open = openOf(booking);
  if (booking.status === 'active') return [booking.paused ? 'rental/resume' : 'rental/pause', 'rental/end', 'override'];
  if (booking.status !== 'upcoming') return [];
  return ['rental/start', ...(open?.kind !== 'start' ? [] : ([open.step === 'undo' ? 'overrideStart' : 'giveUp'] as const))];
}

/** Whether a move goes on whatever the vehicle reports or answers. */
export const isOverride = (change: Change) => change === 'override' || change === 'overrideStart';

export const isMove = (change: Change): change is Move => change.startsWith('rental/') || isOverride(change) || change === 'giveUp';

/** Where each change is sent; that of giveUp names a transition. */
export function pathOf({ change, transition }: Ordered): string {
  const paths: Partial<Record<Change, string>> = {
    capture: 'deposit/capture',
    fee: 'fees',
    override: 'rental/end',
    overrideStart: 'rental/start',
    giveUp: `transitions/${transition}/cancel`,
  };
  return paths[change] ?? change;
}

/** Whether a change needs an amount. */
export const movesMoney = (change: Change) => change === 'refund' || change === 'capture' || change === 'fee';

/** Whether a change needs a reason. */
export const isReasoned = (change: Change) => movesMoney(change) || isOverride(change);

/** The most that a change may move. */
export const limitOf = (change: Change, booking: AdminBooking) =>
  movesMoney(change) ? booking.limits[change as 'refund' | 'capture' | 'fee'] : 0;

/** Why a change is off; empty: it is on. What only the service knows is its answer. */
export function whyNotChanged(change: Change, booking: AdminBooking, me: Me | null, now: number, texts: Texts): string {
  const off = texts.booking.off;
  if (movesMoney(change) && me?.level !== 'administrator') return off.administrator;
  if (me?.level === 'viewer') return texts.off.viewer;
  if (![...movesOf(booking), ...changesOf(booking)].includes(change)) return off.status(texts.bookings.status[booking.status]);
  const open = openOf(booking);
  if (open && !movesMoney(change) && change !== 'giveUp' && !joins(change, open)) {
    return off.inTransition(texts.rental.kinds[open.kind]);
  }
  switch (change) {
    case 'giveUp':
      return open?.step === 'command' ? off.onItsWay : open?.step === 'pay' || open?.step === 'confirm' ? '' : off.givenUp;
    case 'start':
    case 'rental/start':
      return !open && Date.parse(booking.end_date) <= now ? off.over : '';
    case 'extend':
      // Staff may, while the client keeps the vehicle.
      return booking.can_extend || (booking.status === 'active' && Date.parse(booking.end_date) <= now) ? '' : off.notExtendable;
    case 'vehicle':
      return booking.charges.length > 0 ? off.tried : '';
    case 'refund':
      return booking.limits.refund > 0 ? '' : off.allBack;
    case 'capture':
      return booking.limits.capture > 0 ? '' : off.captured;
    default:
      return '';
  }
}

/** Whether a move goes on with an open transition: it has the command ordered again, or does without the vehicle. */
export function joins(change: Change, open: Transition): boolean {
  switch (change) {
    case 'override':
      return open.kind === 'end';
    case 'overrideStart':
      return open.step === 'undo';
    default:
      return change === `rental/${open.kind}` && open.step === 'confirm';
  }
}

/** A change with what it needs. */
export interface Ordered {
  change: Change;
  /** The start that is given up. */
  transition?: string;
  body?: Record<string, unknown>;
}
