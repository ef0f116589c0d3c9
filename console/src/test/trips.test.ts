// @vitest-environment happy-dom
import { afterEach, expect, it } from 'vitest';
import { doubled, openConsole, type Pages } from './service';

let pages: Pages;
afterEach(() => pages.close());

const trip = (hour: number, change: object = {}) => ({
  from: new Date(2026, 0, 2, hour, 10).toISOString(),
  to: new Date(2026, 0, 2, hour, 35, 20).toISOString(),
  distance_km: 11.42,
  start: { latitude: 48.1407, longitude: 11.5583, address: 'Arnulfstr. 1' },
  end: { latitude: 48.1274, longitude: 11.6049, address: null },
  booking_id: 1,
  booking_reference: 'BK-2026-00001',
  client: 'anna',
  ...change,
});

it('lists the trips of a day once they are asked for, each with its driver and its file', async () => {
  localStorage.setItem('map', 'hidden');
  pages = await openConsole({
    ...doubled,
    halts: [],
    'vehicles/1/trips': (path: string) => (path.includes(`from=${encodeURIComponent(new Date(2026, 0, 2).toISOString())}`)
      ? [trip(8), trip(9, { booking_id: null, booking_reference: null, client: null }),
        trip(10, { to: new Date().toISOString() })] : []),
  });
  await pages.open('#/vehicles/1', 'details[data-trips], details input[name="day"]');
  const details = document.querySelector<HTMLInputElement>('input[name="day"]')!.closest('details')!;
  expect(pages.requests.filter((r) => r.includes('trips'))).toEqual([]);
  details.open = true;
  details.dispatchEvent(new Event('toggle'));
  await pages.until(() => details.textContent!.includes('It did not drive on this day'));
  const day = details.querySelector<HTMLInputElement>('input[name="day"]')!;
  day.value = '2026-01-02';
  day.dispatchEvent(new Event('change', { bubbles: true }));
  await pages.until(() => details.dataset.trips === '3');
  expect(pages.texts('details [role="status"]')[0]).toBe('3 trips, 34.3 km All of the day as GPX');
  const rows = pages.texts('details[data-trips] tbody tr');
  expect(rows[0]).toMatch(/^08:10–08:35 ?11\.4 km25 minanna BK-2026-00001Arnulfstr\. 1 ?47\.1 km from HbfGPX$/);
  expect(rows[1]).toContain('no booking');
  expect(rows[2]).toMatch(/^since /);
  const file = details.querySelector('tbody a[download]')!.getAttribute('href')!;
  const asked = new URL(file, 'http://x/console/').searchParams;
  expect([asked.get('from'), asked.get('to')]).toEqual([trip(8).from, new Date(2026, 0, 2, 8, 35, 21).toISOString()]);
  expect(pages.errors).toEqual([]);
});
