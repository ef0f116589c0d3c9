import type { Ordered } from './actions';

/** An action that was chosen elsewhere: the page of the vehicle takes it, and asks where its button would. */
class Wanted {
  #chosen = $state.raw<{ vehicle: number; action: Ordered } | null>(null);

  set(vehicle: number, action: Ordered) {
    this.#chosen = { vehicle, action };
  }

  /** Returns what is wanted of a vehicle, once. */
  take(vehicle: number): Ordered | null {
    if (this.#chosen?.vehicle !== vehicle) return null;
    const { action } = this.#chosen;
    this.#chosen = null;
    return action;
  }
}

export const wanted = new Wanted();
