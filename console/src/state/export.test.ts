import { afterEach, expect, it, vi } from 'vitest';
import { save } from '../csv';
import { exportList } from './export';

vi.mock('../csv', async (original) => ({ ...(await original<typeof import('../csv')>()), save: vi.fn() }));
afterEach(() => void vi.unstubAllGlobals());

it.each([
  [99, null, { rows: 100, more: false }],
  [200, 'next', { rows: 100, more: true }],
])('says whether a file has all rows: %d pages', async (pages, last, want) => {
  vi.stubGlobal('fetch', vi.fn());
  let n = 0;
  vi.mocked(fetch).mockImplementation(
    async () =>
      ({
        ok: true,
        status: 200,
        json: async () => ({ data: [{ id: ++n }], meta: { next_cursor: n > pages ? last : 'next' } }),
      }) as Response,
  );
  expect(await exportList('charges', new URLSearchParams({ state: 'paid' }), 'charges.csv', ['id'])).toEqual(want);
  expect(vi.mocked(save).mock.lastCall?.[1].split('\n').filter(Boolean)).toHaveLength(101);
});
