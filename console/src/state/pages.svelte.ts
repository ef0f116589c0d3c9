// The pages of a list of the API, newest first, and the list as a file.
import { get } from '../api/client';
import { csv, save } from '../csv';

const pageSize = 50;
const exportedPages = 100; // of 100 rows each

export class Pages<Item> {
  items = $state.raw<Item[]>([]);
  /** Leads to the next page; null: there is none. */
  cursor = $state<string | null>(null);
  reading = $state(true);
  problem = $state('');
  #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Reads the first page, or the one that follows what was read. */
  read(filters: URLSearchParams, next = false) {
    return this.#try(async () => {
      const { data, meta } = await this.#page(filters, pageSize, next ? this.cursor : null);
      this.items = next ? [...this.items, ...data] : data;
      this.cursor = meta.next_cursor;
    });
  }

  /** Saves all that passes the filters as a file. */
  export(filters: URLSearchParams, file: string, columns: readonly (keyof Item & string)[]) {
    return this.#try(async () => {
      const rows: Item[] = [];
      let cursor: string | null = null;
      for (let n = 0; n < exportedPages && (n === 0 || cursor); n++) {
        const { data, meta } = await this.#page(filters, 100, cursor);
        rows.push(...data);
        cursor = meta.next_cursor;
      }
      save(file, csv([[...columns], ...rows.map((row) => columns.map((name) => row[name] as string | number | boolean | null))]));
    });
  }

  /** Whether the first page alone is shown. */
  get isFirst(): boolean {
    return this.items.length <= pageSize;
  }

  #page(filters: URLSearchParams, limit: number, cursor: string | null) {
    const query = new URLSearchParams(filters);
    query.set('limit', String(limit));
    if (cursor) query.set('cursor', cursor);
    return get<Item[], { next_cursor: string | null }>(`${this.#path}?${query}`);
  }

  async #try(work: () => Promise<void>) {
    this.reading = true;
    try {
      await work();
      this.problem = '';
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    } finally {
      this.reading = false;
    }
  }
}
