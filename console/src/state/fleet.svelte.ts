// What the console knows of commands, halts and rentals, kept current by events.
import { SvelteMap } from 'svelte/reactivity';
import {
  ApiError,
  get,
  getPages,
  type Command,
  type Halt,
  type Me,
} from '../api/client';
import { follow, type BookingChange, type RentalChange, type StatusChange } from '../api/events';
import { unique } from '../unique';
import { serverTime } from '../api/servertime';
import { alerts } from './alerts.svelte';
import { isNewer } from './merge';
import { vehicles } from './vehicles.svelte';

const commandsHeld = 5000;
const rentalsHeld = 5000;
const readAgainAfter = 3000;
const askAfterEvery = 3000;

export class Fleet {
  me = $state<Me | null>(null);
  /** Commands that are known, by id. */
  commands = new SvelteMap<string, Command>();
  /** The last event of the rental of a booking, by the booking's id, since everything was read. */
  rentals = new SvelteMap<number, RentalChange>();
  halts = $state<Halt[]>([]);
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
  #readingHalts = 0;
  #watching = new Set<(change: StatusChange) => void>();
  #watchingBookings = new Set<(change: BookingChange) => void>();
  #stop = () => {};
  #again: ReturnType<typeof setTimeout> | undefined;
  #haltsAgain: ReturnType<typeof setTimeout> | undefined;

  async start() {
    let stopped = false;
    this.#stop = () => (stopped = true);
    while (!this.me) {
      try {
        this.me = (await get<Me>('me')).data;
        this.problem = '';
      } catch (error) {
        this.#say(error);
        await new Promise((resolve) => setTimeout(resolve, readAgainAfter));
      }
      if (stopped) return;
    }
    const asking = setInterval(() => void this.#askAfterOpen(), askAfterEvery);
    const unfollow = follow({
      command: (command) => this.mergeCommand(command),
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
    this.problem = error instanceof ApiError || this.connected ? String(error instanceof Error ? error.message : error) : '';
  }

  /** Follows commands while no events come. */
  async #askAfterOpen() {
    if (this.connected) return;
    try {
      await this.#readOpen();
    } catch {
      // They are read again with everything else.
    }
  }

  stop() {
    this.#stop();
  }

  /** Takes what was read of a command, unless something newer is known. */
  mergeCommand(command: Command) {
    if (!isNewer(command, this.commands.get(command.id))) return;
    this.commands.set(command.id, command);
    if (this.commands.size <= commandsHeld) return;
    const [first] = this.commands.keys(); // the one that became known first
    if (first !== undefined) this.commands.delete(first);
  }

  commandsOf(vehicle: number): Command[] {
    return [...this.commands.values()]
      .filter((c) => c.vehicle_id === vehicle)
      .sort((a, b) => b.requested_at.localeCompare(a.requested_at));
  }

  async #readHalts() {
    const reading = ++this.#readingHalts;
    const { data } = await get<Halt[]>('halts');
    if (reading === this.#readingHalts) this.halts = unique(data, (h) => h.agency_id); // else a newer answer is there, or comes
  }

  /** Reads the halts; if that fails, again and again. */
  async readHalts() {
    clearTimeout(this.#haltsAgain);
    try {
      await this.#readHalts();
      this.problem = '';
    } catch (error) {
      this.#say(error);
      this.#haltsAgain = setTimeout(() => void this.readHalts(), readAgainAfter);
    }
  }

  /** The halt that stops commands to a vehicle; null: there is none. */
  haltOf(agency: number): Halt | null {
    return this.halts.find((h) => h.agency_id === null || h.agency_id === agency) ?? null;
  }

  async #read() {
    clearTimeout(this.#again);
    const reading = ++this.#reading;
    try {
      await Promise.all([vehicles.read(), this.#readHalts(), this.#readOpen()]);
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

  /** Reads all commands that are open: they may have ended meanwhile. */
  async #readOpen() {
    const open = [...this.commands.values()].filter((c) => c.completed_at === null);
    if (open.length === 0) return;
    const [oldest] = open.map((c) => c.requested_at).sort();
    const { items, more } = await getPages<Command>(`commands?from=${oldest}`, commandsHeld / 100);
    for (const command of items) this.mergeCommand(command);
    const read = new Set(items.map((c) => c.id));
    for (const { id } of open) if (!more && !read.has(id)) this.commands.delete(id); // its vehicle belongs to another agency now
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

export const fleet = new Fleet();
