// @vitest-environment happy-dom
import { beforeEach, expect, it, vi } from 'vitest';
import { ApiError, get, order, type AdminBooking, type Me, type Vehicle, type VehicleStatus } from '../../api/client';
import { session } from '../../state/session.svelte';
import { wanted } from '../../state/wanted.svelte';
import { doubled, vehicle } from '../../test/service';
import { en } from '../../texts/en';
import { language } from '../../texts/index.svelte';
import { VehiclePage } from './page.svelte';

vi.mock('../../api/client', async (original) => ({ ...(await original<object>()), get: vi.fn(), order: vi.fn() }));

let answers: Record<string, unknown>;
let page: VehiclePage;
beforeEach(async () => {
  sessionStorage.clear();
  localStorage.clear();
  await language.begin();
  session.me = { subject: 'zoe', level: 'administrator', agency_id: null, scopes: [] } as unknown as Me;
  const status = doubled['vehicles/1/status'] as VehicleStatus;
  answers = {
    'vehicles/1': { ...vehicle(1), unit: 'u-1', capabilities: { commands: ['lock', 'unlock', 'attention'], refresh: true, signals: [] } },
    'vehicles/1/status': { ...status, status: 'available', telemetry: { ...status.telemetry, is_locked: true } },
    'vehicles/1/commands': [],
    bookings: [],
  };
  vi.mocked(order).mockReset();
  vi.mocked(get).mockImplementation(async (path: string) => {
    const data = answers[path.split('?')[0]!];
    if (data === undefined) throw new ApiError(404, 'not_found', 'It is not there.', null);
    return { data, meta: { sections: {}, older: {}, source: path.includes('refresh') ? 'live' : 'cache' } } as never;
  });
  page = new VehiclePage(1);
});

it('suggests what the state of the vehicle needs, of what its unit offers', async () => {
  await page.read();
  expect(page.main).toEqual(['unlock', 'lock']);
  page.status = { ...page.status!, telemetry: { ...page.status!.telemetry, is_locked: false } };
  expect(page.main).toEqual(['lock', 'unlock']);
  expect(page.reasons).toEqual([]); // what a unit does not offer is no reason to wait
});

it('asks before what is dangerous, and sends it once', async () => {
  await page.read();
  answers.bookings = [{ id: 7, client: 'anna', start_date: '2026-01-01T00:00:00Z' } as AdminBooking];
  page.choose('unlock');
  expect(page.asking).toBe(true);
  expect(order).not.toHaveBeenCalled();
  await vi.waitFor(() => expect(page.booking?.active?.client).toBe('anna'));
  page.send();
  page.choose('lock'); // while the other has no answer
  expect(vi.mocked(order).mock.calls.map(([id, action]) => [id, action])).toEqual([[1, 'unlock']]);
});

it('says why the palette’s choice is refused, and orders nothing', async () => {
  answers['vehicles/1/status'] = {
    ...(answers['vehicles/1/status'] as VehicleStatus),
    connectivity: { status: 'offline', last_seen: '2126-01-01T00:00:00Z' },
  };
  await page.read();
  wanted.set(1, 'unlock');
  page.chooseWanted();
  expect(page.refused).toBe(en.palette.refused(en.actions.unlock, en.off.offline));
  expect(page.asking).toBe(false);
  expect(page.reasons).toEqual([[en.off.offline, ['lock', 'unlock', 'attention']]]);
});

it('says that a vehicle is gone, and what a refresh has brought', async () => {
  await page.read();
  await page.refresh();
  expect(page.refreshed).toBe(en.refreshed.live);
  delete answers['vehicles/1'];
  await page.read();
  expect([page.gone, page.unread]).toEqual([true, en.trouble.gone]);
});

it('keeps who has the vehicle by the newest reading, whichever answer comes last', async () => {
  let release = () => {};
  const before = vi.mocked(get).getMockImplementation()!;
  await page.read();
  vi.mocked(get).mockImplementationOnce(() => new Promise((done) => (release = () => done({ data: [] } as never))));
  page.choose('unlock'); // reads who has it now: slowly
  page.asking = false;
  answers.bookings = [{ id: 7, client: 'anna', start_date: '2026-01-01T00:00:00Z' } as AdminBooking];
  vi.mocked(get).mockImplementation(before);
  page.choose('unlock');
  await vi.waitFor(() => expect(page.booking?.active?.client).toBe('anna'));
  release();
  await new Promise((done) => setTimeout(done));
  expect(page.booking?.active?.client).toBe('anna');
});
