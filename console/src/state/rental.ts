// How the start, pause, resumption or end of a rental goes: what the API calls a transition.
import type { AdminBooking, ReturnCheck, Transition } from '../api/client';
import type { RentalChange } from '../api/events';
import type { Texts } from '../texts/en';
import type { Tone } from './bookingStory';

/** The states of bookings that are not over, as a filter. */
export const notOver = 'upcoming,active';

/** The transition that is open; undefined: none is. An instance of the version before knows none. */
export const openOf = (booking: Pick<AdminBooking, 'transition'>): Transition | undefined =>
  booking.transition?.state === 'open' ? booking.transition : undefined;

/** Whether a person should look at the rental. An event may be newer than what was read. */
export function needsStaff(booking: Pick<AdminBooking, 'transition'>, event: RentalChange | undefined): boolean {
  const read = booking.transition;
  // Ids grow with time.
  const newest = event && (!read || event.transition.id >= read.id) ? event.transition : read;
  return newest?.state === 'open' && newest.needs_staff;
}

export function toneOfTransition(t: Transition): Tone {
  if (t.state === 'open') return t.needs_staff || t.step === 'confirm' ? 'warn' : 'open';
  return t.state === 'done' ? 'good' : 'bad';
}

export const toneOfStep: Record<Transition['steps'][number]['state'], Tone> = {
  pending: 'plain',
  running: 'open',
  unknown: 'warn',
  done: 'good',
  failed: 'bad',
};

/** What an open transition waits for; empty: it has ended. */
export function waitsFor(t: Transition, texts: Texts): string {
  if (t.state !== 'open' || !t.step) return '';
  const words = texts.rental.waits;
  if (t.step === 'pay' && t.next.includes('confirm_payment')) return words.owner;
  return t.step === 'confirm' && t.kind === 'end' ? words.confirmEnd : words[t.step];
}

/** What a person can do about an open transition that needs one. */
export function toDo(t: Transition, texts: Texts): string {
  const words = texts.rental.todo;
  if (t.step === 'undo') return words.undo;
  return t.step === 'refund' || t.step === 'book' ? words.payments : words[t.kind];
}

/** Why a person did without the vehicle; empty: none did. */
export function overrideText(t: Transition, texts: Texts): string {
  if (!t.override) return '';
  return t.kind === 'start' ? texts.rental.overrideStart(t.override) : texts.rental.override(t.override);
}

/** Since when the present step lasts; null: it has ended. */
export const sinceOf = (t: Transition): string | null => t.steps.find((s) => s.state === 'running' || s.state === 'unknown')?.at ?? null;

/** What a condition of a return wants, and what the vehicle reported, in the language of the texts. */
export function checkText(check: ReturnCheck, texts: Texts): { expected: string; reported: string } {
  const say = check.name === 'place' ? texts.rental.place : texts.rental.said;
  return { expected: say(check.expected), reported: say(check.reported) };
}
