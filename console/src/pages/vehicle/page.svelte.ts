// What the page of one vehicle knows, and what people order there.
import { untrack } from 'svelte';
import {
  ApiError,
  get,
  order,
  type Action,
  type AdminBooking,
  type Command,
  type StatusMeta,
  type Vehicle,
  type VehicleStatus,
} from '../../api/client';
import type { StatusChange } from '../../api/events';
import { isMoving } from '../../freshness';
import { actions, harmless, mainActions, whyNot, type Ordered } from '../../state/actions';
import { clock } from '../../state/clock.svelte';
import { commands } from '../../state/commands.svelte';
import { halts } from '../../state/halts.svelte';
import { left } from '../../state/left.svelte';
import { session } from '../../state/session.svelte';
import { stream } from '../../state/stream.svelte';
import { mergeStatus } from '../../state/merge';
import { requestsTo } from '../../state/requests.svelte';
import { vehicles } from '../../state/vehicles.svelte';
import { wanted } from '../../state/wanted.svelte';
import { failure, t } from '../../texts/index.svelte';
import { ageOf } from './words';

// Each reading of a status is an entry of the audit log: events bring what changes meanwhile.
const readAgainEvery = (moves: boolean) => (moves ? 60_000 : 2 * 60_000);
const lookEvery = 20_000;
const recent = 10 * 60_000; // a person comes back to see what became of it
const readAddressAfter = 3000;
export const commandsShown = 10;

export class VehiclePage {
  vehicle = $state.raw<Vehicle | null>(null);
  status = $state.raw<VehicleStatus | null>(null);
  ages = $state.raw<Pick<StatusMeta, 'sections' | 'older'> | null>(null);
  booking = $state.raw<{ active: AdminBooking | null; upcoming: AdminBooking | null } | null>(null);
  bookingProblem = $state('');
  /** Why what a person did here failed. */
  problem = $state('');
  /** Why the vehicle could not be read again. */
  unread = $state('');
  gone = $state(false);
  /** Whether it was read, or that failed: before, what the state suggests would change under the pointer. */
  settled = $state(false);
  /** What a refresh has brought, in words. */
  refreshed = $state('');
  refreshing = $state(false);
  /** Why what the palette has chosen was not done. */
  refused = $state('');
  /** What is to be confirmed. */
  asked = $state<Ordered | null>(null);
  asking = $state(false);

  readonly id: number;
  #openedAt = clock.now;
  #bookingReadings = 0;
  #vehicleReadings = 0;
  #isLeft = false;

  constructor(id: number) {
    this.id = id;
  }

  /** Whether its unit is in touch: the newer of what was read here and of what the list knows. */
  contact = $derived.by(() => {
    const [live, read] = [vehicles.get(this.id), this.status?.connectivity];
    if (!live?.seenAt || (read?.last_seen && Date.parse(read.last_seen) > live.seenAt)) return read;
    return { status: live.contact as VehicleStatus['connectivity']['status'], last_seen: new Date(live.seenAt).toISOString() };
  });
  commands = $derived.by(() => commands.of(this.id).slice(0, commandsShown));
  /** The newest command since shortly before the page was opened: what became of it stands next to the buttons. */
  latest = $derived(this.commands.find((c) => Date.parse(c.requested_at) > this.#openedAt - recent && c.action !== 'report-state'));
  reported = $derived.by(() => {
    if (!this.status || !this.ages || !this.vehicle) return null;
    const { contact } = this;
    const connectivity = { ...this.status.connectivity, ...(contact && { status: contact.status, last_seen: contact.last_seen }) };
    return { status: { ...this.status, connectivity }, ages: this.ages, vehicle: this.vehicle };
  });
  requests = $derived.by(() => session.me && requestsTo<Ordered>(`vehicle ${this.id}`, session.me.subject));
  busyOrdering = $derived(this.requests?.busy ?? true);
  /** The two actions that the state suggests. */
  main = $derived.by(() =>
    mainActions(
      {
        locked: this.status?.telemetry.is_locked ?? null,
        inUse: this.status?.status === 'in_use' || !!this.booking?.active,
        moving: this.status !== null && isMoving(this.status),
      },
      this.vehicle?.capabilities.commands,
    ),
  );

  /** Why an action is off; empty: it is on. */
  why(action: Action): string {
    if (this.requests?.lost) return t().lost.first;
    const { vehicle } = this;
    return whyNot(
      action,
      session.me,
      {
        unit: vehicle?.unit ?? null,
        commands: vehicle?.capabilities.commands,
        contact: this.contact?.status,
        speed: this.#speed(),
        busy: this.commands.find((c) => c.completed_at === null)?.requested_by ?? null,
      },
      vehicle && halts.of(vehicle.agency_id),
      clock.now,
      t(),
    );
  }

  #speed() {
    const at = this.reported && ageOf('telemetry.speed_kmh', this.reported);
    return at ? { kmh: this.status?.telemetry.speed_kmh ?? null, at: Date.parse(at) } : undefined;
  }

  /** Each reason for which some action is off now, with these actions; not that a unit never offers one. */
  reasons = $derived.by(() => {
    const reasons = new Map<string, Ordered[]>();
    for (const action of actions) {
      const reason = this.why(action);
      if (reason && reason !== t().off.capability) reasons.set(reason, [...(reasons.get(reason) ?? []), action]);
    }
    return [...reasons];
  });

  #fail(error: unknown): string {
    this.gone = error instanceof ApiError && error.status === 404;
    if (this.gone) vehicles.remove(this.id);
    return this.gone ? t().trouble.gone : failure(error);
  }

  async #readStatus(query = '') {
    const meanwhile: StatusChange[] = [];
    const unwatch = stream.watch((change) => change.vehicle_id === this.id && meanwhile.push(change));
    try {
      const { data, meta } = await get<VehicleStatus, StatusMeta>(`vehicles/${this.id}/status${query}`);
      let now = { status: data, ages: meta as Pick<StatusMeta, 'sections' | 'older'> };
      // The answer may have been made before these events.
      for (const change of meanwhile) now = mergeStatus(now.status, now.ages, change);
      [this.status, this.ages] = [now.status, now.ages];
      vehicles.takeStatus(this.id, now.status, now.ages);
      return meta.source;
    } finally {
      unwatch();
    }
  }

  async #readBookings() {
    const of = async (state: string) => (await get<AdminBooking[]>(`bookings?vehicle_id=${this.id}&status=${state}&limit=100`)).data;
    const reading = ++this.#bookingReadings;
    try {
      const [active, upcoming] = await Promise.all([of('active'), of('upcoming')]);
      if (reading !== this.#bookingReadings) return; // a newer one has begun
      this.booking = { active: active[0] ?? null, upcoming: upcoming.sort((a, b) => a.start_date.localeCompare(b.start_date))[0] ?? null };
      this.bookingProblem = '';
    } catch (error) {
      if (reading === this.#bookingReadings) this.bookingProblem = failure(error);
    }
  }

  /** Reads what no event brings, such as its maintenance. */
  async #readVehicle() {
    const reading = ++this.#vehicleReadings;
    const { data } = await get<Vehicle>(`vehicles/${this.id}`);
    if (reading === this.#vehicleReadings) this.#take(data);
  }

  #take(now: Vehicle) {
    this.vehicle = now;
    if (this.status) this.status = { ...this.status, status: now.status };
  }

  async read() {
    try {
      await this.#readVehicle();
      const bookings = this.#readBookings();
      const recent = get<Command[]>(`vehicles/${this.id}/commands?limit=${commandsShown}`);
      await Promise.all([this.#readStatus(), recent]);
      for (const command of (await recent).data) commands.take(command);
      this.settled = true;
      await bookings;
      if (this.gone) this.problem = '';
      this.unread = '';
      this.gone = false;
    } catch (error) {
      this.unread = this.#fail(error);
      const chosen = wanted.consume(this.id); // it is not ordered later, without a click
      if (chosen) this.refused = t().palette.refused(t().actions[chosen.action], this.unread);
    } finally {
      this.settled = true;
    }
  }

  /** Follows what changes, until the function that it returns is called. */
  follow(): () => void {
    this.#isLeft = false;
    let readAt = Date.now();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readAgain = () => {
      clearTimeout(timer);
      timer = undefined;
      readAt = Date.now();
      void this.read();
    };
    // An event has what has changed: not what was confirmed, nor the address of a new place.
    const unwatch = stream.watch((change: StatusChange) => {
      if (change.vehicle_id !== this.id || !this.status || !this.ages) return;
      const now = mergeStatus(this.status, this.ages, change);
      [this.status, this.ages] = [now.status, now.ages];
      const isPlace = change.location !== undefined && 'latitude' in change.location;
      if (change.too_large || (isPlace && !isMoving(now.status))) timer ??= setTimeout(readAgain, readAddressAfter);
    });
    const unwatchBookings = stream.watchBookings((change) => change.vehicle_id === this.id && void this.#readBookings());
    const look = () => {
      if (document.hidden) return;
      if (this.unread || Date.now() - readAt >= readAgainEvery(this.status !== null && isMoving(this.status))) readAgain();
      else this.#readVehicle().catch(() => {}); // why is said when all is read
    };
    const reading = setInterval(look, lookEvery);
    document.addEventListener('visibilitychange', look);
    return () => {
      unwatch();
      unwatchBookings();
      clearTimeout(timer);
      clearInterval(reading);
      document.removeEventListener('visibilitychange', look);
      wanted.consume(this.id);
      this.#isLeft = true;
    };
  }

  /** What a person has changed here. */
  changed(now: Vehicle) {
    this.#vehicleReadings++; // what is being read may be older
    this.#take(now);
    vehicles.readAgain(this.id);
  }

  /** Orders an action, or asks first. */
  choose(action: Ordered) {
    if (this.busyOrdering || this.why(action)) return;
    this.refused = this.refreshed = '';
    this.asked = action;
    if (harmless.includes(action)) this.send();
    else {
      this.asking = true;
      void this.#readBookings(); // who has it now
    }
  }

  /** Does what the palette has chosen, once it is known whether it can be done: an effect, which runs again for each choice. */
  chooseWanted() {
    if (!this.vehicle || !this.requests || !this.settled) return;
    const chosen = wanted.consume(this.id);
    if (!chosen) return;
    untrack(() => {
      const name = t().actions[chosen.action];
      const reason = this.why(chosen.action) || (this.busyOrdering ? t().booking.sending : '');
      this.refused = chosen.late ? t().palette.late(name) : reason ? t().palette.refused(name, reason) : '';
      if (!this.refused) this.choose(chosen.action);
    });
  }

  #post = (action: Ordered, key: string) => order(this.id, action, key, action === 'attention' ? { signal: 'lights' } : undefined);

  send() {
    if (this.asked) void this.#settle(this.requests?.send(this.asked, this.#post));
  }

  again() {
    void this.#settle(this.requests?.again(this.#post));
  }

  async #settle(answer: ReturnType<typeof order> | undefined) {
    this.asking = false;
    const action = this.requests?.lost?.what ?? this.asked;
    if (!answer || !action) return;
    this.problem = '';
    try {
      commands.take((await answer).data);
    } catch (error) {
      if (!this.requests?.lost) this.problem = this.#fail(error);
      if (this.#isLeft) left.say(`#/vehicles/${this.id}`, `${t().actions[action]}, ${vehicles.name(this.id)}`, error);
    }
  }

  async refresh() {
    this.refreshing = true;
    this.problem = this.refreshed = '';
    try {
      this.refreshed = t().refreshed[await this.#readStatus('?refresh=true')] ?? '';
    } catch (error) {
      this.problem = this.#fail(error);
    } finally {
      this.refreshing = false;
    }
  }
}
