// The pages of a list of the API, newest first.
import { get } from '../api/client';
import { serverTime } from '../api/servertime';
import { unique } from '../unique';

const pageSize = 50;
const settleFor = 200; // while a person types
const blankAfter = 500; // rows of the former filters are not shown for longer as those of the new ones
const changesFor = 500; // of a large fleet many items change together

/** Calls read again, every 10 s, as long as something has a problem. For effects. */
export function readAgain(problem: unknown, read: () => unknown) {
  if (!problem) return;
  const timer = setInterval(read, 10_000);
  return () => clearInterval(timer);
}

export class Pages<Item> {
  items = $state.raw<Item[]>([]);
  /** Leads to the next page; null: there is none. */
  cursor = $state<string | null>(null);
  reading = $state(true);
  problem = $state('');
  /** When items were read, in the service's time; null: not yet. */
  readAt = $state<number | null>(null);
  readonly path: string;
  #id: (item: Item) => unknown;
  #readings = 0;
  #readsNext = false;
  #shown = ''; // the filters of the items

  /** The parameters of filters, now: the last hour moves on. */
  readonly asked: (filters: URLSearchParams) => URLSearchParams;

  /** The id of an item, if it has one. */
  constructor(
    path: string,
    id: (item: Item) => unknown = (item) => item,
    asked = (filters: URLSearchParams) => new URLSearchParams(filters),
  ) {
    this.path = path;
    this.#id = id;
    this.asked = asked;
  }

  /** Reads the first page, or the one that follows what was read. */
  async read(filters: URLSearchParams, next = false) {
    const reading = ++this.#readings;
    next &&= String(filters) === this.#shown; // a cursor leads on from rows of the same filters
    this.reading = true;
    this.#readsNext = next;
    const isOther = () => reading === this.#readings && String(filters) !== this.#shown;
    const slow = setTimeout(() => isOther() && this.#blank(), blankAfter);
    try {
      const { data, meta } = await this.#page(filters, next ? this.cursor : null);
      if (reading !== this.#readings) return; // other filters were chosen meanwhile
      // An item that has moved since may be on two pages.
      this.items = unique(next ? [...this.items, ...data] : data, this.#id);
      this.cursor = meta.next_cursor;
      if (!next) this.readAt = serverTime.now();
      this.#shown = String(filters);
      this.problem = '';
    } catch (error) {
      if (reading !== this.#readings) return;
      this.problem = error instanceof Error ? error.message : String(error);
      if (isOther()) this.#blank();
    } finally {
      clearTimeout(slow);
      if (reading === this.#readings) this.reading = this.#readsNext = false;
    }
  }

  #blank() {
    this.items = [];
    this.cursor = this.readAt = null;
  }

  /**
   * Reads the first page once filters have been the same for a moment, and again while it alone is
   * shown, until the returned function is called. watch calls what it is given after each change.
   */
  follow(filters: URLSearchParams, every: number, watch: (changed: () => void) => () => void = () => () => {}): () => void {
    const readAgain = () => {
      if (this.isFirst && !this.#readsNext && !document.hidden) void this.read(filters);
    };
    const first = setTimeout(() => void this.read(filters), settleFor);
    const again = setInterval(readAgain, every);
    let soon: ReturnType<typeof setTimeout> | undefined;
    const unwatch = watch(() => {
      soon ??= setTimeout(() => {
        soon = undefined;
        readAgain();
      }, changesFor);
    });
    return () => {
      unwatch();
      clearTimeout(soon);
      clearTimeout(first);
      clearInterval(again);
    };
  }

  /** Whether the first page alone is shown. */
  get isFirst(): boolean {
    return this.items.length <= pageSize;
  }

  #page(filters: URLSearchParams, cursor: string | null) {
    const query = this.asked(filters);
    query.set('limit', String(pageSize));
    if (cursor) query.set('cursor', cursor);
    return get<Item[], { next_cursor: string | null }>(`${this.path}?${query}`);
  }
}
