import type { Ordered } from './actions';

/** For how long a choice counts: the page of the vehicle is read meanwhile. */
const validFor = 5000;

/** An action that was chosen elsewhere: the page of the vehicle takes it, and asks where its button would. */
export class Wanted {
  #chosen = $state.raw<{ vehicle: number; action: Ordered; at: number } | null>(null);

  set(vehicle: number, action: Ordered) {
    this.#chosen = { vehicle, action, at: Date.now() };
  }

  /** Returns what is wanted of a vehicle, once, and only if it was chosen just now. */
  consume(vehicle: number): Ordered | null {
    if (this.#chosen?.vehicle !== vehicle) return null;
    const { action, at } = this.#chosen;
    this.#chosen = null;
    return Date.now() - at < validFor ? action : null;
  }
}

export const wanted = new Wanted();
