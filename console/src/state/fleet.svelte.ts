// What the console knows of the fleet, kept current by events.
import { SvelteMap } from 'svelte/reactivity';
import {
  ApiError,
  get,
  getPages,
  type Command,
  type Halt,
  type Me,
  type StatusMeta,
  type VehicleStatus,
  type VehicleSummary,
} from '../api/client';
import { follow, type BookingChange, type RentalChange, type StatusChange } from '../api/events';
import { unique } from '../unique';
import { serverTime } from '../api/servertime';
import { markers } from './markers.svelte';
import { Meanwhile } from './meanwhile';
import { isNewer, merge, newer, timesOf } from './merge';

export interface Alarm {
  /** Counts alarms: there may be several of a kind in one millisecond. */
  serial: number;
  vehicle: number;
  at: string;
  kind: string;
  text: string | null;
}

// Of a larger fleet the console holds the newest vehicles, and asks the service for others.
const pagesHeld = 10;
const commandsHeld = 5000;
const rentalsHeld = 5000;
const readAgainAfter = 3000;
const askAfterEvery = 3000;

export class Fleet {
  me = $state<Me | null>(null);
  vehicles = new SvelteMap<number, VehicleSummary>();
  /** Commands that are known, by id. */
  commands = new SvelteMap<string, Command>();
  /** The last event of the rental of a booking, by the booking's id, since everything was read. */
  rentals = new SvelteMap<number, RentalChange>();
  halts = $state<Halt[]>([]);
  alarms = $state<Alarm[]>([]);
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
  /** Whether there are vehicles that are not held here. */
  more = $state(false);
  problem = $state('');
  #meanwhile = new Meanwhile<VehicleSummary>();
  /** Added vehicles, which are no event: of each that only the markers have, the list is read again once. */
  #missed = new Set<number>();
  #reading = 0;
  #alarms = 0;
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
      presence: (id, connectivity) => {
        markers.contact(id, connectivity.status);
        this.#change(id, (vehicle) => ({ ...vehicle, connectivity: connectivity as VehicleSummary['connectivity'] }));
      },
      alarm: (vehicle, at, alarm) => {
        this.alarms = [{ ...alarm, serial: ++this.#alarms, vehicle, at }, ...this.alarms].slice(0, 20);
      },
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
    markers.again();
    const reading = ++this.#reading;
    try {
      let more = false;
      const readVehicles = async () => {
        const pages = await getPages<VehicleSummary>('vehicles', pagesHeld);
        more = pages.more;
        return pages.items;
      };
      const store = (vehicles: Map<number, VehicleSummary>) => {
        if (reading !== this.#reading) return; // events may have been missed since: a newer one has begun
        for (const id of this.vehicles.keys()) if (!vehicles.has(id)) this.vehicles.delete(id);
        for (const [id, vehicle] of vehicles) this.vehicles.set(id, vehicle);
        this.more = more;
      };
      await Promise.all([this.#meanwhile.read(readVehicles, store), this.#readHalts(), this.#readOpen()]);
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

  /** Lets go of a vehicle that there is no more, also in what is being read. */
  remove(id: number) {
    this.#meanwhile.add(id, () => null);
    this.vehicles.delete(id);
  }

  /**
   * Takes from the markers what is no event: vehicles that were added or are gone, values that were
   * confirmed, and contacts that changed nothing else.
   */
  mergeMarkers() {
    for (const id of markers.drainGone()) {
      this.remove(id);
      this.#missed.delete(id);
    }
    const missed = this.loaded && !this.more ? [...markers.all.keys()].filter((id) => !this.vehicles.has(id) && !this.#missed.has(id)) : [];
    for (const id of missed) this.#missed.add(id);
    if (missed.length > 0) void this.#read();
    for (const [id, known] of this.vehicles) {
      const { contact, seenAt, locked, lockedAt, energy, energyAt } = markers.all.get(id) ?? {};
      const time = (at: number | null | undefined) => (at ? new Date(at).toISOString() : null);
      const fuel = known.powertrain === 'electric' ? 'battery_level_percent' : 'fuel_level_percent';
      const vehicle = newer(known, { is_locked: locked, [fuel]: energy }, { is_locked: time(lockedAt), [fuel]: time(energyAt) });
      if (vehicle !== known) this.vehicles.set(id, vehicle);
      const { status, last_seen } = vehicle.connectivity;
      if (!contact || !seenAt || (last_seen !== null && seenAt <= Date.parse(last_seen))) continue;
      const connectivity = { status: contact as typeof status, last_seen: new Date(seenAt).toISOString() };
      this.vehicles.set(id, { ...vehicle, connectivity: { ...vehicle.connectivity, ...connectivity } });
    }
  }

  /** Takes what was read of a vehicle's status: it may be newer than what events brought. */
  mergeStatus(id: number, { telemetry, diagnostics }: VehicleStatus, ages: Pick<StatusMeta, 'sections' | 'older'>) {
    this.#change(id, (vehicle) => newer(vehicle, { ...telemetry, ...diagnostics }, timesOf(ages)));
  }

  /** Finds vehicles that are not held here. Returns whether there are more than were found. */
  async find(query: Record<string, string>): Promise<boolean> {
    const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
    let more = false;
    await this.#meanwhile.read(
      async () => {
        const pages = await getPages<VehicleSummary>(`vehicles?${parameters}`, 1);
        more = pages.more;
        return pages.items;
      },
      (found) => found.forEach((vehicle, id) => this.vehicles.set(id, vehicle)),
    );
    return more;
  }

  #change(id: number, change: (vehicle: VehicleSummary) => VehicleSummary) {
    this.#meanwhile.add(id, change);
    const known = this.vehicles.get(id);
    if (known) this.vehicles.set(id, change(known));
  }

  #report(change: StatusChange) {
    markers.report(change);
    this.#change(change.vehicle_id, (vehicle) => merge(vehicle, change));
    for (const listener of this.#watching) listener(change);
  }

  #changeBooking(change: BookingChange) {
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
