// The markers of all vehicles, read while a map is shown and kept current by events.
import { ApiError, getIfChanged } from '../api/client';
import { around, decode, moved, type Box, type FleetRows, type Marker } from '../map/markers';
import type { StatusChange } from '../api/events';
import { Meanwhile } from './meanwhile';

const readEvery = 60_000;
const readShare = 100; // reading takes at most one part in a hundred of the time, however large the fleet is

export class Markers {
  /** By id. Not reactive: there may be very many. See version and drainChanged. */
  all = new Map<number, Marker>();
  /** Counts readings of all. */
  version = $state(0);
  /** Around all vehicles, when they were first read. */
  box = $state.raw<Box | null>(null);
  problem = $state('');

  #changed = new Set<number>();
  #gone: number[] = [];
  #etag = '';
  #meanwhile = new Meanwhile<Marker>();
  #readings = 0;
  #readers = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Keeps the markers current until the returned function is called. */
  follow(): () => void {
    if (this.#readers++ === 0) void this.#read();
    return () => {
      if (--this.#readers === 0) clearTimeout(this.#timer);
    };
  }

  /** Reads all again: events may be missing. */
  again() {
    if (this.#readers === 0) this.#etag = '';
    else void this.#read();
  }

  /** The vehicles that have changed since the last call. */
  drainChanged(): Set<number> {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }

  /** The vehicles that readings no longer had since the last call. */
  drainGone(): number[] {
    const gone = this.#gone;
    this.#gone = [];
    return gone;
  }

  report(change: StatusChange) {
    this.#change(change.vehicle_id, (marker) => moved(marker, change));
  }

  contact(id: number, contact: string) {
    this.#change(id, (marker) => ({ ...marker, contact }));
  }

  #change(id: number, change: (marker: Marker) => Marker) {
    this.#meanwhile.add(id, change);
    const known = this.all.get(id);
    if (!known) return;
    this.all.set(id, change(known));
    this.#changed.add(id);
  }

  async #read() {
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
          this.#replace([...read.values()]);
        },
      );
      if (reading !== this.#readings) return;
      this.problem = '';
    } catch (error) {
      if (reading !== this.#readings) return;
      if (!(error instanceof ApiError && error.status === 401)) {
        this.problem = error instanceof Error ? error.message : String(error);
      }
    }
    if (this.#readers === 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#read(), Math.max(readEvery, readShare * (performance.now() - began)));
  }

  #replace(markers: Marker[]) {
    const before = this.all;
    this.all = new Map();
    for (const marker of markers) {
      // What is stored may be older than what an event has brought.
      const known = before.get(marker.id);
      const place = known?.locatedAt && known.locatedAt > (marker.locatedAt ?? 0) ? known : marker;
      const energy = known?.energyAt && known.energyAt > (marker.energyAt ?? 0) ? known : marker;
      this.all.set(marker.id, {
        ...marker,
        latitude: place.latitude,
        longitude: place.longitude,
        locatedAt: place.locatedAt,
        energy: energy.energy,
        energyAt: energy.energyAt ?? null,
      });
    }
    this.#gone = [...this.#gone, ...before.keys()].filter((id) => !this.all.has(id));
    this.box ??= around(markers);
    this.version++;
  }
}

export const markers = new Markers();
