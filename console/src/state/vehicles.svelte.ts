// All vehicles that the person may see: the list, the map, their filters and counts have them from
// here. They are read in one answer, and events keep them current.
import { ApiError, get, getIfChanged, type StatusMeta, type VehicleStatus, type VehicleSummary } from '../api/client';
import type { StatusChange } from '../api/events';
import { around, type Box } from '../map/markers';
import { Meanwhile } from './meanwhile';
import { decode, keepNewer, timesOf, updated, withReport, withStatus, withSummary, type FleetRows, type VehicleRow } from './vehicleRow';

const readEvery = 60_000;
const readShare = 100; // reading takes at most one part in a hundred of the time, however large the fleet is
const showEvery = 500; // of a large fleet many change together
const detailsAfter = 300; // a person may scroll on
const detailsAtMost = 100; // in one request

export class Vehicles {
  /** Whether they were read. */
  loaded = $state(false);
  /** Around all vehicles, when they were first read. */
  box = $state.raw<Box | null>(null);
  problem = $state('');

  #rows = new Map<number, VehicleRow>(); // by ascending id
  #version = $state(0); // counts the changes that pages show
  #shown: ReturnType<typeof setTimeout> | undefined; // until the next change is shown
  #changed = false; // since then
  #etag = '';
  #meanwhile = new Meanwhile<VehicleRow>();
  #readings = 0;
  #readers = 0;
  #readAt = performance.now();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due = new Set<number>(); // whose details are to be read
  #detailsTimer: ReturnType<typeof setTimeout> | undefined;
  #visibleTimer: ReturnType<typeof setTimeout> | undefined;

  /** By ascending id. */
  all = $derived.by((): VehicleRow[] => {
    void this.#version;
    return [...this.#rows.values()];
  });

  get(id: number): VehicleRow | undefined {
    void this.#version;
    return this.#rows.get(id);
  }

  /** What people call a vehicle. */
  name(id: number): string {
    return this.get(id)?.plate ?? String(id);
  }

  /** Reads all again now and then, until the returned function is called: what was added is no event. */
  follow(): () => void {
    if (this.#readers++ === 0) this.#readLater(this.#readAt + readEvery - performance.now());
    return () => {
      if (--this.#readers === 0) clearTimeout(this.#timer);
    };
  }

  /** Reads all: events may be missing. Fails as reading does. */
  async read() {
    clearTimeout(this.#timer);
    const began = performance.now();
    const reading = ++this.#readings;
    try {
      let etag: string | undefined;
      await this.#meanwhile.read(
        async () => {
          const answer = await getIfChanged<FleetRows>('fleet', this.#etag);
          etag = answer?.etag;
          return answer ? decode(answer.data) : [];
        },
        (read) => {
          if (etag === undefined || reading !== this.#readings) return; // nothing has changed, or a newer reading has begun
          this.#etag = etag;
          this.#replace(read);
        },
      );
      if (reading !== this.#readings) return;
      this.problem = '';
      this.loaded = true;
      this.#readAt = performance.now();
    } finally {
      if (reading === this.#readings) this.#readLater(Math.max(readEvery, readShare * (performance.now() - began)));
    }
  }

  #readLater(after: number) {
    clearTimeout(this.#timer);
    if (this.#readers === 0) return;
    this.#timer = setTimeout(() => {
      this.read().catch((error) => {
        if (!(error instanceof ApiError && error.status === 401)) this.problem = error instanceof Error ? error.message : String(error);
      });
    }, after);
  }

  #replace(read: Map<number, VehicleRow>) {
    for (const [id, row] of read) read.set(id, keepNewer(row, this.#rows.get(id)));
    this.#rows = read;
    this.box ??= around(read.values());
    this.#show();
  }

  /** Shows a change: now, or with others. */
  #show() {
    this.#changed = true;
    if (this.#shown !== undefined) return;
    this.#changed = false;
    this.#version++;
    this.#shown = setTimeout(() => {
      this.#shown = undefined;
      if (this.#changed) this.#show();
    }, showEvery);
  }

  #change(id: number, change: (row: VehicleRow) => VehicleRow | null) {
    this.#meanwhile.add(id, change);
    const known = this.#rows.get(id);
    if (!known) return;
    const row = change(known);
    if (row) this.#rows.set(id, row);
    else {
      this.#rows.delete(id);
      this.#etag = ''; // the next answer may have it again
    }
    this.#show();
  }

  /** Takes what an event says of a vehicle. */
  report(change: StatusChange) {
    this.#change(change.vehicle_id, (row) => withReport(row, change));
  }

  /** Takes what an event says of the connection of a vehicle's unit. */
  presence(id: number, { status, last_seen }: { status: string; last_seen: string | null }) {
    this.#change(id, (row) => updated(row, { contact: status, seenAt: last_seen === null ? null : Date.parse(last_seen) }));
  }

  /** Takes what was read of a vehicle's status: it may be newer than what events have brought. */
  takeStatus(id: number, status: VehicleStatus, ages: Pick<StatusMeta, 'sections' | 'older'>) {
    this.#change(id, (row) => withStatus(row, status, timesOf(ages, row.powertrain)));
  }

  /** Lets go of a vehicle that there is no more, also in what is being read. */
  remove(id: number) {
    this.#change(id, () => null);
  }

  /** Reads the details of the vehicles that are visible, where they are not known yet, once these have been the same for a moment. */
  readDetails(ids: number[]) {
    clearTimeout(this.#visibleTimer);
    this.#visibleTimer = setTimeout(() => {
      for (const id of ids) {
        const row = this.#rows.get(id);
        if (row && (row.moving === undefined || row.address === undefined)) this.readAgain(id);
      }
    }, detailsAfter);
  }

  /** Reads a vehicle in particular soon: something has changed of which no event has all. */
  readAgain(id: number) {
    this.#due.add(id);
    this.#detailsTimer ??= setTimeout(() => void this.#readDue(), detailsAfter);
  }

  async #readDue() {
    const ids = [...this.#due].slice(0, detailsAtMost);
    for (const id of ids) this.#due.delete(id);
    try {
      const { data } = await get<VehicleSummary[]>(`vehicles?ids=${ids.join()}&limit=${detailsAtMost}`);
      const found = new Map(data.map((summary) => [summary.id, summary]));
      for (const id of ids) {
        const summary = found.get(id);
        this.#change(id, (row) => (summary ? withSummary(row, summary) : null));
      }
    } catch {
      // What is visible is read again when it changes, or was scrolled.
    } finally {
      this.#detailsTimer = undefined;
      if (this.#due.size > 0) this.#detailsTimer = setTimeout(() => void this.#readDue(), detailsAfter);
    }
  }
}

export const vehicles = new Vehicles();
