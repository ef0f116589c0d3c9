// @vitest-environment happy-dom
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { doubled, openConsole, uuid, type Pages } from './service';

let pages: Pages;
beforeAll(async () => {
  localStorage.setItem('map', 'hidden'); // it needs WebGL
  pages = await openConsole(doubled);
  await pages.until(() => pages.texts('.live').includes('Live'));
});
beforeEach(() => void pages.errors.splice(0));
afterAll(() => pages.close());

const intact = () => {
  expect(pages.errors).toEqual([]);
  expect(pages.texts('[data-failed]')).toEqual([]);
  expect(pages.texts('.live')).toEqual(['Live']);
};

it.each([
  ['#/', 'tr[data-vehicle]', 3],
  ['#/vehicles/1', '.rest .commands li', 2],
  [`#/commands/${uuid(1)}`, '[data-step="published"]', 2],
  [`#/bulk/${uuid(9)}`, 'tr[data-kind]', 2],
  ['#/commands', 'tr[data-command]', 3],
  ['#/bulk', 'tr[data-bulk]', 2],
  ['#/activity', 'tbody tr', 3],
  ['#/bookings', 'tr[data-booking]', 2],
  ['#/bookings/1', 'tr[data-charge]', 2],
  ['#/charges', 'tr[data-charge]', 2],
  ['#/client?agency_id=1&client=anna', 'tr[data-booking]', 2],
  ['#/agencies', 'tr[data-agency]', 2],
  ['#/agencies?agency_id=1', '[data-station]', 2],
  ['#/units', 'tr[data-unit]', 2],
  ['#/units?view=rejects', 'tr[data-unit]', 4],
  ['#/units?view=unknown', 'tr[data-unit]', 2],
  ['#/tour', '[data-step]', 7],
])('%s shows lists whose data are doubled', async (page, rows, count) => {
  await pages.open(page, rows);
  await pages.until(() => pages.texts(rows).length === count);
  intact();
});

it('shows each halt', () => expect(pages.texts('.halt')).toHaveLength(2));
