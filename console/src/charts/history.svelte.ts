// The history of a vehicle, as it was read last.
import { get, type VehicleHistory } from '../api/client';
import { serverTime } from '../api/servertime';
import { length, spanAt, type Span, type SpanName } from './span';

const mostPoints = 1000;

export class History {
  data = $state.raw<VehicleHistory | null>(null);
  problem = $state('');
  /** Whether another time is being read than the one that is shown. */
  reading = $state(false);
  span = $state.raw<Span>({ from: 0, to: 0 });
  #vehicle: number;
  #days: number | null = null;
  #shown = '';
  #turn = 0;

  constructor(vehicle: number) {
    this.#vehicle = vehicle;
  }

  /** For how many days something is kept; null: not known yet. */
  get days(): number | null {
    return this.data?.retention_days ?? this.#days;
  }

  /** Reads the span that is a number of steps before now; of a booking from its start on. The latest call counts. */
  async read(name: SpanName, steps: number, bookingStart: number | null) {
    const now = serverTime.now();
    const days = this.days ?? 7;
    const span =
      name === 'booking' ? { from: Math.max(bookingStart ?? now, now - length('all', 31)), to: now } : spanAt(name, steps, days, now);
    const wanted = `${name} ${steps}`;
    const turn = ++this.#turn;
    this.reading = wanted !== this.#shown;
    try {
      const [from, to] = [span.from, span.to].map((time) => new Date(time).toISOString());
      const { data } = await get<VehicleHistory>(`vehicles/${this.#vehicle}/history?points=${mostPoints}&from=${from}&to=${to}`);
      if (turn !== this.#turn) return;
      this.data = data;
      this.#days = data.retention_days;
      this.#shown = wanted;
      this.span = span;
      this.problem = '';
    } catch (error) {
      if (turn !== this.#turn) return;
      this.problem = error instanceof Error ? error.message : String(error);
      if (wanted !== this.#shown) this.data = null; // of another time
    } finally {
      if (turn === this.#turn) this.reading = false;
    }
  }
}
