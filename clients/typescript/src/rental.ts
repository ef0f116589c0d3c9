import { MotorpoolError, type Check } from './error.js';
import { Motorpool, pause, type Answer, type Data, type Options } from './client.js';

export type Booking = Data<'get', 'bookings/{booking}'>;

/** A start, pause, resume or end of a rental: what the service does, step by step, also if the app is closed. */
export interface Transition {
  id: string;
  booking_id: number;
  kind: 'start' | 'pause' | 'resume' | 'end';
  state: 'open' | 'done' | 'failed';
  step: string;
  needs_staff: boolean;
  steps: { name: string; state: 'done' | 'running' | 'failed' | 'unknown' | 'pending'; at: string | null }[];
  /** What the client can do now: wait, try_door, ask_again, cancel, confirm_payment, change_card, contact_agency. */
  next: string[];
  error: (ConstructorParameters<typeof MotorpoolError>[1] & { message: string }) | null;
  checks: Check[];
  requested_at: string;
  ended_at: string | null;
}

export interface Wait extends Options {
  /** Is called with each state of the transition that is new: show its steps, and what the client can do (`next`). */
  onChange?: (transition: Transition) => void;
  /** For how long to wait for the end. Defaults to 120,000 ms. */
  within?: number;
}

/**
 * Starts, pauses, resumes or ends a rental, and returns the booking once the vehicle has done it. It throws what stands in the
 * way; and, if the transition is open for longer, an error with the code transition_open: it goes on without the app.
 */
export async function move(
  api: Motorpool, kind: Transition['kind'], booking: number, place: { latitude: number; longitude: number } | undefined, wait: Wait = {},
): Promise<Booking> {
  const prefer = wait.prefer ?? (wait.onChange ? 'respond-async' : undefined); // who shows steps does not wait for the last one
  const sent = await api.send<Booking | Transition>('POST', 'bookings/{booking}/' + kind, {
    ...wait, ...(prefer ? { prefer } : {}), path: { booking }, body: place,
  });
  if (sent.status === 202) await follow(api, sent as Answer<Transition>, wait);
  else return sent.data as Booking;
  return (await api.get('bookings/{booking}', { path: { booking }, ...(wait.signal ? { signal: wait.signal } : {}) })).data;
}

/** Waits for the end of a transition whose answer was 202. */
export async function follow(
  api: Motorpool, answer: Answer<Transition>, { onChange, within = 120_000, signal }: Wait = {},
): Promise<Transition> {
  const until = Date.now() + within;
  let seen = '';
  for (let { data, location } = answer, turn = 0; ; turn++) {
    const now = JSON.stringify(data);
    if (now !== seen) onChange?.(data);
    seen = now;
    if (data.state === 'done') return data;
    if (data.error && data.state === 'failed') throw new MotorpoolError(data.error.message, { checks: data.checks, ...data.error });
    if (!location || data.state === 'failed' || Date.now() > until) {
      throw new MotorpoolError(`The ${data.kind} of the rental is not done yet.`, { code: 'transition_open' as never, outcome: 'unknown' });
    }
    await pause(Math.min(1000, 125 * 2 ** turn), signal);
    data = (await api.send<Transition>('GET', location, signal ? { signal } : {})).data;
  }
}
