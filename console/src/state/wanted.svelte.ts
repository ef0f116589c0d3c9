import type { Ordered } from './actions';

/** For how long a choice counts: the page of the vehicle is read meanwhile. */
const validFor = 10_000;

/** An action that was chosen elsewhere: the page of the vehicle takes it, and asks where its button would. */
export class Wanted {
  #chosen = $state.raw<{ vehicle: number; action: Ordered; at: number } | null>(null);

  set(vehicle: number, action: Ordered) {
    this.#chosen = { vehicle, action, at: Date.now() };
  }

  /** Returns what is wanted of a vehicle, once; late: it was not chosen just now, so it must be chosen again. */
  consume(vehicle: number): { action: Ordered; late: boolean } | null {
    if (this.#chosen?.vehicle !== vehicle) return null;
    const { action, at } = this.#chosen;
    this.#chosen = null;
    return { action, late: Date.now() - at >= validFor };
  }
}

export const wanted = new Wanted();
