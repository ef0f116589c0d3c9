// @vitest-environment happy-dom
import { afterEach, expect, it, vi } from 'vitest';
import { doubled, openConsole, type Pages } from './service';

vi.mock('../map/library', () => {
  throw new Error('Failed to fetch dynamically imported module');
});

let pages: Pages;
const context = new Proxy({ measureText: () => ({ width: 0 }) } as Record<string | symbol, unknown>, {
  get: (all, name) => all[name] ?? (() => {}),
  set: () => true,
});
/** Has the browser draw on canvases of some kinds. */
function drawOn(...kinds: string[]) {
  const getContext = (kind: string) => (kinds.includes(kind) ? context : null);
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockImplementation(getContext as never);
  vi.spyOn(HTMLCanvasElement.prototype, 'toDataURL').mockReturnValue('data:,');
}
const open = async () => {
  localStorage.setItem('map', 'shown');
  pages = await openConsole({ ...doubled, halts: [], stations: null });
  await pages.open('#/', 'tr[data-vehicle]');
};
afterEach(() => {
  pages.close();
  vi.restoreAllMocks();
});

it('shows the list next to a map that fails, and the map once it can be drawn', async () => {
  await open(); // happy-dom draws on no canvas
  await pages.until(() => pages.texts('.pane [data-failed]').length === 1);
  expect(pages.texts('tr[data-vehicle]')).toHaveLength(3);
  drawOn('2d');
  document.querySelector<HTMLButtonElement>('.pane [data-failed] button')?.click();
  await pages.until(() => pages.texts('.fleet .problem').filter((text) => text.startsWith('This did not work')).length === 1);
  expect(pages.texts('[data-failed]')).toEqual([]);
});

it('says that the map cannot be loaded, and leaves the list alone', async () => {
  drawOn('2d', 'webgl2');
  await open();
  await pages.until(() => pages.texts('.map [role=alert] button').includes('Load the page again'));
  expect(pages.texts('tr[data-vehicle]')).toHaveLength(3);
  expect(pages.texts('[data-failed]')).toEqual([]);
});
