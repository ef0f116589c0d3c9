import type { components } from './contract.js';
import { Motorpool, pause, type Data, type Options } from './client.js';
import { MotorpoolError } from './error.js';

export type Booking = Data<'get', 'bookings/{booking}'>;

/** A start, pause, resume or end of a rental: what the service does, step by step, also if the app is closed. */
export type Transition = components['schemas']['Transition'];

/** How to wait for the end of a transition. */
export interface Wait {
  /** Is called with each state of the transition that is new: show its steps, and what the client can do (`next`). */
  onChange?: (transition: Transition) => void;
  /** Is called with each payment that the card's owner has to confirm, once: give its secret to the processor's SDK. */
  onPayment?: (clientSecret: string) => void;
  /** For how long to wait for the end. Defaults to 120,000 ms. */
  within?: number;
  signal?: AbortSignal;
}

export interface Move extends Wait, Options {
  /** Of a start: where the client is. */
  place?: { latitude: number; longitude: number };
}

/**
 * Starts, pauses, resumes or ends a rental, and returns the booking once the vehicle has done it. It throws what stands in the
 * way; and, if the transition is open for longer, an error with the code transition_open: it goes on without the app.
 */
export async function move(
  api: Motorpool, kind: Transition['kind'], booking: number, { place, onChange, onPayment, within, ...options }: Move = {},
): Promise<Booking> {
  if (onChange) options.prefer ??= 'respond-async'; // an app that shows steps does not wait for the last one
  const { data } = await api.post(`bookings/{booking}/${kind}`, { ...options, path: { booking }, body: place });
  if (!('kind' in data)) return data;
  const { signal } = options;
  await follow(api, data, { onChange, onPayment, within, signal });
  return (await api.get('bookings/{booking}', { path: { booking }, signal })).data;
}

/** Waits for the end of a transition: of a 202, or, in an app that was closed, of the booking (`booking.transition`). */
export async function follow(
  api: Motorpool, data: Transition, { onChange, onPayment, within = 120_000, signal }: Wait = {},
): Promise<Transition> {
  const until = Date.now() + within;
  let seen = '';
  let confirmed = '';
  for (let turn = 0; ; turn++) {
    const now = JSON.stringify(data);
    if (now !== seen) onChange?.(data);
    seen = now;
    if (onPayment && data.next.includes('confirm_payment')) {
      const secret = await paymentOf(api, data.booking_id, signal);
      if (secret && secret !== confirmed) onPayment((confirmed = secret));
    }
    if (data.state === 'done') return data;
    if (data.error && data.state === 'failed') throw new MotorpoolError(data.error.message, { ...data.error, checks: data.checks });
    if (Date.now() > until) {
      throw new MotorpoolError(`The ${data.kind} of the rental is not done yet.`, { code: 'transition_open', outcome: 'unknown' });
    }
    await pause(Math.min(1000, 125 * 2 ** turn), signal);
    data = (await read(api, data, until, signal)) ?? data;
  }
}

/** The transition as it is now; null: it cannot be read now, and goes on. */
async function read(api: Motorpool, { booking_id, id }: Transition, until: number, signal?: AbortSignal): Promise<Transition | null> {
  try {
    const path = { booking: booking_id, transition: id };
    return (await api.get('bookings/{booking}/transitions/{transition}', { path, signal })).data;
  } catch (error) {
    const passes = error instanceof MotorpoolError && (error.code === 'no_answer' || error.retryable);
    if (passes && Date.now() <= until) return null;
    throw error;
  }
}

/** The secret of the payment that waits for the card's owner; null: none does, or it cannot be read now. */
async function paymentOf(api: Motorpool, booking: number, signal?: AbortSignal): Promise<string | null> {
  try {
    return (await api.get('bookings/{booking}/payment-action', { path: { booking }, signal })).data.client_secret;
  } catch (error) {
    if (error instanceof MotorpoolError) return null; // the start goes on without it
    throw error;
  }
}
