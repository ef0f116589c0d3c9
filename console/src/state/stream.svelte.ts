// Follows the events of the service, and reads everything that they keep current: first, and again when some may be missing.
import { SvelteMap } from 'svelte/reactivity';
import { ApiError } from '../api/client';
import { follow, type BookingChange, type RentalChange, type StatusChange } from '../api/events';
import { serverTime } from '../api/servertime';
import { alerts } from './alerts.svelte';
import { commands } from './commands.svelte';
import { halts } from './halts.svelte';
import { session } from './session.svelte';
import { vehicles } from './vehicles.svelte';

const rentalsHeld = 5000;
const readAgainAfter = 3000;
const askAfterEvery = 3000;

export class Stream {
  /** The last event of the rental of a booking, by the booking's id, since everything was read. */
  rentals = new SvelteMap<number, RentalChange>();
  connected = $state(false);
  /** Since when no events arrive, in the service's time, and why (see Handlers); null: they do, or have not begun to. */
  lost = $state<{ since: number; why: string | null } | null>(null);
  /** Why an event could not be handled; empty: all were, or everything was read again since. */
  fault = $state('');
  /** How many parts of the page have failed (see Guard). */
  broken = $state(0);
  /** Whether what is shown follows what happens. */
  live = $derived(this.connected && this.fault === '' && this.broken === 0);
  /** Counts how often everything was read again, so that a page does so, too. */
  readings = $state(0);
  loaded = $state(false);
  problem = $state('');
  #reading = 0;
  #watching = new Set<(change: StatusChange) => void>();
  #watchingBookings = new Set<(change: BookingChange) => void>();
  #stop = () => {};
  #again: ReturnType<typeof setTimeout> | undefined;
  #haltsAgain: ReturnType<typeof setTimeout> | undefined;

  async start() {
    let stopped = false;
    this.#stop = () => (stopped = true);
    while (!session.me) {
      try {
        await session.read();
        this.problem = '';
      } catch (error) {
        this.#say(error);
        await new Promise((resolve) => setTimeout(resolve, readAgainAfter));
      }
      if (stopped) return;
    }
    const asking = setInterval(() => void this.#askAfterOpen(), askAfterEvery);
    const unfollow = follow({
      command: (command) => commands.take(command),
      status: (change) => this.#report(change),
      presence: (id, connectivity) => vehicles.presence(id, connectivity),
      alert: (change) => alerts.take(change),
      halt: () => void this.readHalts(),
      booking: (change) => this.#changeBooking(change),
      rental: (change) => {
        this.rentals.set(change.booking_id, change);
        this.#changeBooking(change);
        const [first] = this.rentals.keys();
        if (this.rentals.size > rentalsHeld && first !== undefined) this.rentals.delete(first);
      },
      reset: () => {
        this.rentals.clear(); // later events may have been missed
        void this.#read();
      },
      failed: (error) => (this.fault = error instanceof Error ? error.message : String(error)),
      connected: (yes, why, since) => {
        this.connected = yes;
        // What a page could not read meanwhile, it reads now.
        if (yes && this.lost) this.readings++;
        this.lost = yes ? null : { since: this.lost?.since ?? since ?? serverTime.now(), why };
      },
    });
    this.#stop = () => {
      unfollow();
      clearInterval(asking);
      clearTimeout(this.#again);
      clearTimeout(this.#haltsAgain);
    };
  }

  #say(error: unknown) {
    if (error instanceof ApiError && error.status === 401) return;
    // While nothing arrives, the banner says so.
    const isAnswer = error instanceof ApiError && error.code !== 'no_answer';
    this.problem = isAnswer || this.connected ? String(error instanceof Error ? error.message : error) : '';
  }

  /** Follows commands while no events come. */
  async #askAfterOpen() {
    if (this.connected) return;
    try {
      await commands.readOpen();
    } catch {
      // They are read again with everything else.
    }
  }

  stop() {
    this.#stop();
  }

  /** Reads the halts; if that fails, again and again. */
  async readHalts() {
    clearTimeout(this.#haltsAgain);
    try {
      await halts.read();
      this.problem = '';
    } catch (error) {
      this.#say(error);
      this.#haltsAgain = setTimeout(() => void this.readHalts(), readAgainAfter);
    }
  }

  async #read() {
    clearTimeout(this.#again);
    const reading = ++this.#reading;
    try {
      await Promise.all([vehicles.read(), halts.read(), commands.readOpen()]);
      if (reading !== this.#reading) return;
      this.problem = '';
      this.fault = '';
      this.loaded = true;
      this.readings++;
    } catch (error) {
      if (reading !== this.#reading) return;
      this.#say(error);
      this.#again = setTimeout(() => void this.#read(), readAgainAfter);
    }
  }

  #report(change: StatusChange) {
    vehicles.report(change);
    for (const listener of this.#watching) listener(change);
  }

  #changeBooking(change: BookingChange) {
    vehicles.readAgain(change.vehicle_id); // its status may have changed
    for (const listener of this.#watchingBookings) listener(change);
  }

  /** Hands over changes of bookings and of their rentals until the returned function is called. */
  watchBookings(listener: (change: BookingChange) => void): () => void {
    this.#watchingBookings.add(listener);
    return () => this.#watchingBookings.delete(listener);
  }

  /** Hands over what vehicles report until the returned function is called. */
  watch(listener: (change: StatusChange) => void): () => void {
    this.#watching.add(listener);
    return () => this.#watching.delete(listener);
  }
}

export const stream = new Stream();
