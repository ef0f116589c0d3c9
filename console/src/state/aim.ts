const aimFor = 500; // ms from a look to the click
/** Knows which of the things in a list have been in their places for a moment: a click on others was aimed at another one. */
export class Aim<Id> {
  #order: readonly Id[] = [];
  #moved = new Map<Id, number>(); // when each did
  /** Takes the order as it is shown now. */
  follow(now: readonly Id[]) {
    this.#moved = new Map(now.map((id, i) => [id, this.#order[i] === id ? (this.#moved.get(id) ?? 0) : performance.now()]));
    this.#order = now;
  }

  /** Whether a click was not aimed at this one. A key, which has no place, always is. */
  misses(event: MouseEvent, id: Id): boolean {
    const missed = event.detail > 0 && performance.now() - (this.#moved.get(id) ?? Infinity) < aimFor;
    if (missed) event.preventDefault();
    return missed;
  }
}
