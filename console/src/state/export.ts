// A list of the API as a file.
import { getPages } from '../api/client';
import { csvOf, save, type Column } from '../csv';

const exportedPages = 100; // of 100 rows each

/** Saves what passes the filters as a file. Returns how many rows it has, and whether there are more: it has the newest. */
export async function exportList<Item>(path: string, filters: URLSearchParams, file: string, columns: readonly Column<Item>[]) {
  const { items, more } = await getPages<Item>(`${path}?${filters}`, exportedPages);
  save(file, csvOf(columns, items));
  return { rows: items.length, more };
}
