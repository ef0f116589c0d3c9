// What may be done to a booking, and why not.
import type { AdminBooking, Me } from '../api/client';
import type { Texts } from '../texts/en';

export type Change = 'start' | 'end' | 'refund' | 'capture' | 'fee';

export const changes: Change[] = ['start', 'end', 'refund', 'capture', 'fee'];

/** Where each change is sent. */
export const pathOf: Record<Change, string> = { start: 'start', end: 'end', refund: 'refund', capture: 'deposit/capture', fee: 'fees' };

/** Whether a change needs an amount and a reason. */
export const movesMoney = (change: Change) => change === 'refund' || change === 'capture' || change === 'fee';

/** The most that a change may move. */
export const limitOf = (change: Change, booking: AdminBooking) =>
  movesMoney(change) ? booking.limits[change as 'refund' | 'capture' | 'fee'] : 0;

/** Why a change is off; empty: it is on. What only the service knows is its answer. */
export function whyNotChanged(change: Change, booking: AdminBooking, me: Me | null, now: number, texts: Texts): string {
  const off = texts.booking.off;
  if (movesMoney(change) && me?.level !== 'administrator') return off.administrator;
  if (me?.level === 'viewer') return texts.off.viewer;
  const status = texts.bookings.status[booking.status];
  switch (change) {
    case 'start':
      if (booking.status !== 'upcoming') return off.notUpcoming(status);
      return Date.parse(booking.end_date) <= now ? off.over : '';
    case 'end':
      return booking.status === 'active' ? '' : off.notActive(status);
    case 'refund':
      if (booking.limits.refund > 0) return '';
      return booking.payment.charged > 0 ? off.allBack : off.nothingPaid;
    case 'capture': {
      if (booking.limits.capture > 0) return '';
      const deposit = booking.charges.find((c) => c.kind === 'deposit');
      return deposit?.goal === 'capture' ? off.captured : off.notHeld;
    }
    case 'fee':
      return booking.limits.fee > 0 ? '' : off.notStarted;
  }
}

/** A change with what it needs. */
export interface Ordered {
  change: Change;
  body?: Record<string, unknown>;
}
