// What may be done to a booking, and why not.
import { ApiError, type AdminBooking, type Me } from '../api/client';
import type { Texts } from '../texts/en';

export type Change = 'start' | 'end' | 'refund' | 'capture' | 'fee';

export const changes: Change[] = ['start', 'end', 'refund', 'capture', 'fee'];

/** Where each change is sent. */
export const pathOf: Record<Change, string> = { start: 'start', end: 'end', refund: 'refund', capture: 'deposit/capture', fee: 'fees' };

/** Whether a change needs an amount and a reason. */
export const movesMoney = (change: Change) => change === 'refund' || change === 'capture' || change === 'fee';

/** The most that a change may move. */
export const limitOf = (change: Change, booking: AdminBooking) => (movesMoney(change) ? booking.limits[change as 'refund' | 'capture' | 'fee'] : 0);

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

/** Whether it is not known if a request was carried out. Sent again with its key, it is carried out once. */
export function isLost(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code === 'no_answer' || error.code === 'idempotency_in_progress' || error.status >= 500;
}

/** A change that was sent, and not answered yet. */
export interface Sent {
  change: Change;
  key: string;
  body?: Record<string, unknown>;
}

/** Keeps what was sent and not answered, of one person and booking, also while the page is loaded again. */
export class SentChange {
  #name: string;
  #store: Storage;

  constructor(who: string, booking: number, store: Storage) {
    this.#name = `sent ${booking} ${who}`;
    this.#store = store;
  }

  read(): Sent | null {
    return JSON.parse(this.#store.getItem(this.#name) ?? 'null');
  }

  write(sent: Sent | null) {
    if (sent) this.#store.setItem(this.#name, JSON.stringify(sent));
    else this.#store.removeItem(this.#name);
  }
}
