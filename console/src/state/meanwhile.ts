type Change<Item> = (item: Item) => Item | null;

/** Merges what events bring while items are read: an answer may have been made before them. */
export class Meanwhile<Item extends { id: number }> {
  #readings = new Set<[id: number, change: Change<Item>][]>();

  /** Notes what an event has changed of an item; null: there is no such item any more. */
  add(id: number, change: Change<Item>) {
    for (const changes of this.#readings) changes.push([id, change]);
  }

  /** Reads items, and hands them over with what was added until then. */
  async read(items: () => Promise<Item[]>, store: (read: Map<number, Item>) => void) {
    const changes: [number, Change<Item>][] = [];
    this.#readings.add(changes);
    try {
      const read = new Map((await items()).map((item) => [item.id, item]));
      for (const [id, change] of changes) {
        const item = read.get(id);
        const changed = item && change(item);
        if (changed) read.set(id, changed);
        else read.delete(id);
      }
      store(read);
    } finally {
      this.#readings.delete(changes);
    }
  }
}
