// @vitest-environment happy-dom
import { afterEach, expect, it, vi } from 'vitest';
import { doubled, openConsole, type Pages } from './service';

let pages: Pages;
const open = async () => {
  localStorage.setItem('map', 'shown');
  pages = await openConsole({ ...doubled, halts: [], fleet: null, stations: null });
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
  const canvas: Record<string | symbol, unknown> = { measureText: () => ({ width: 0 }) };
  const context = new Proxy(canvas, { get: (all, name) => all[name] ?? (() => {}), set: () => true });
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockImplementation(((kind: string) => (kind === '2d' ? context : null)) as never);
  vi.spyOn(HTMLCanvasElement.prototype, 'toDataURL').mockReturnValue('data:,');
  document.querySelector<HTMLButtonElement>('.pane [data-failed] button')?.click();
  // Each of its problems, though they read the same.
  await pages.until(() => pages.texts('.fleet .problem').filter((text) => text.startsWith('This did not work')).length === 2);
  expect(pages.texts('[data-failed]')).toEqual([]);
});
