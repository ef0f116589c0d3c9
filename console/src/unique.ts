/**
 * Returns items without those whose id one that follows has, too: the later one was read later.
 * Lists are keyed by ids, which must differ.
 */
export function unique<Item>(items: readonly Item[], id: (item: Item) => unknown): Item[] {
  return [...new Map(items.map((item) => [id(item), item])).values()];
}
