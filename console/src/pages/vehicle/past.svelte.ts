// Where a vehicle was and what it reported: of a time that people choose, and since.
import { get, type BookingTrack } from '../../api/client';
import type { StatusChange } from '../../api/events';
import { History } from '../../charts/history.svelte';
import { names as spans, type SpanName } from '../../charts/span';
import { trackOfBooking, trackOfHistory, type Track, type TrackPoint } from '../../map/track';
import { stream } from '../../state/stream.svelte';
import { route } from '../../state/route.svelte';
import type { VehiclePage } from './page.svelte';

// Each reading of a history is an entry of the audit log: events bring what comes after it.
const readEvery = 5 * 60_000;
const mostInTail = 1000;

export class Past {
  /** The moment that the track and the charts point at. */
  at = $state<number | null>(null);
  readonly history: History;
  #page: VehiclePage;
  #bookingTrack = $state.raw<Track | null>(null);
  #tail = $state.raw<TrackPoint[]>([]); // what was reported since the history was read

  #left = false;

  constructor(page: VehiclePage) {
    this.#page = page;
    this.history = new History(page.id);
  }

  begun = $derived.by(() => {
    const start = this.#page.booking?.active?.actual_start;
    return start ? Date.parse(start) : null;
  });
  span = $derived.by<SpanName>(() => {
    const chosen = spans.find((name) => name === route.parameters.get('span')) ?? 'day';
    return chosen === 'booking' && this.#page.booking && this.begun === null ? 'day' : chosen;
  });
  steps = $derived.by(() =>
    this.span === 'booking' ? 0 : Math.min(1000, Math.max(0, Number.parseInt(route.parameters.get('back') ?? '') || 0)),
  );
  track = $derived.by((): Track | null => {
    const read = this.history.data && (this.span === 'booking' ? this.#bookingTrack : trackOfHistory(this.history.data));
    if (!read || this.history.days === 0) return null;
    const last = read.points.at(-1)?.at ?? -Infinity;
    return this.steps > 0 ? read : { ...read, points: [...read.points, ...this.#tail.filter((point) => point.at > last)] };
  });

  choose(name: SpanName, back: number) {
    this.at = null;
    route.setAll({ span: name === 'day' ? '' : name, back: back > 0 ? String(back) : '' });
  }

  async read() {
    if (this.#page.gone) return;
    const active = this.#page.booking?.active;
    await this.history.read(this.span, this.steps, this.begun);
    if (this.#left) return;
    if (this.span === 'booking' && active) {
      try {
        this.#bookingTrack = trackOfBooking((await get<BookingTrack>(`bookings/${active.id}/track?points=1000`)).data);
      } catch (error) {
        this.history.problem = error instanceof Error ? error.message : String(error);
      }
    }
    const last = this.track?.points.at(-1)?.at ?? 0;
    this.#tail = this.#tail.filter((point) => point.at >= last);
  }

  /** Reads again now and then, and follows the vehicle, until the function that it returns is called. */
  follow(): () => void {
    const unwatch = stream.watch((change: StatusChange) => {
      const { id, status } = this.#page; // which has the change already
      if (change.vehicle_id !== id || !status || !change.location || !('latitude' in change.location)) return;
      const { latitude, longitude, timestamp } = status.location;
      if (latitude === null || longitude === null) return;
      const point = { at: Date.parse(timestamp ?? change.at), latitude, longitude, speed: status.telemetry.speed_kmh };
      this.#tail = [...this.#tail.slice(-mostInTail), point];
    });
    const reading = setInterval(() => {
      if (!document.hidden && this.steps === 0) void this.read();
    }, readEvery);
    this.#left = false;
    return () => {
      this.#left = true;
      unwatch();
      clearInterval(reading);
    };
  }
}
