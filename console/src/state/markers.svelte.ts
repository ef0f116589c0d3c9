// The markers of all vehicles, read while a map is shown and kept current by events.
import { ApiError, getIfChanged } from '../api/client';
import { around, decode, moved, type Box, type FleetRows, type Marker } from '../map/markers';
import type { StatusChange } from '../api/events';

const readEvery = 60_000;
const readShare = 100; // reading takes at most one part in so many of the time, however large the fleet is

class Markers {
  /** By id. Not reactive: there may be very many. See version and takeChanged. */
  all = new Map<number, Marker>();
  /** Counts readings of all. */
  version = $state(0);
  agencies = $state<number[]>([]);
  /** Around all vehicles, when they were first read. */
  box = $state.raw<Box | null>(null);
  problem = $state('');

  #changed = new Set<number>();
  #etag = '';
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
  takeChanged(): Set<number> {
    const changed = this.#changed;
    this.#changed = new Set();
    return changed;
  }

  report(change: StatusChange) {
    const known = this.all.get(change.vehicle_id);
    if (known) this.#set(moved(known, change));
  }

  contact(id: number, contact: string) {
    const known = this.all.get(id);
    if (known) this.#set({ ...known, contact });
  }

  #set(marker: Marker) {
    this.all.set(marker.id, marker);
    this.#changed.add(marker.id);
  }

  async #read() {
    clearTimeout(this.#timer);
    const began = performance.now();
    try {
      const answer = await getIfChanged<FleetRows>('fleet', this.#etag);
      if (answer) {
        this.#etag = answer.etag;
        this.#take(decode(answer.data));
      }
      this.problem = '';
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401)) {
        this.problem = error instanceof Error ? error.message : String(error);
      }
    }
    if (this.#readers === 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#read(), Math.max(readEvery, readShare * (performance.now() - began)));
  }

  #take(markers: Marker[]) {
    const before = this.all;
    this.all = new Map();
    for (const marker of markers) {
      // What is stored may be older than what an event has brought.
      const known = before.get(marker.id);
      const newer = known?.locatedAt && known.locatedAt > (marker.locatedAt ?? 0) ? known : marker;
      this.all.set(marker.id, { ...marker, latitude: newer.latitude, longitude: newer.longitude, locatedAt: newer.locatedAt });
    }
    this.agencies = [...new Set(markers.map((m) => m.agency))].sort((a, b) => a - b);
    this.box ??= around(markers);
    this.version++;
  }
}

export const markers = new Markers();
