// The vehicles that are selected, in the list and on the map alike.
import { SvelteSet } from 'svelte/reactivity';

export class Selection {
  ids = new SvelteSet<number>();
  #last: number | null = null;

  /** Changes one vehicle; with range also those between it and the one that was changed before, in the order shown. */
  toggle(id: number, shown: number[] = [], range = false) {
    const on = !this.ids.has(id);
    const [from, to] = [shown.indexOf(this.#last ?? id), shown.indexOf(id)].sort((a, b) => a - b) as [number, number];
    this.set(range && from >= 0 ? shown.slice(from, to + 1) : [id], on);
    this.#last = id;
  }

  set(ids: number[], on: boolean) {
    for (const id of ids) {
      if (on) this.ids.add(id);
      else this.ids.delete(id);
    }
  }

  clear() {
    this.ids.clear();
    this.#last = null;
  }
}

export const selection = new Selection();
