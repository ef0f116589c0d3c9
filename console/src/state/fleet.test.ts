import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Command, VehicleSummary } from '../api/client';
import type { Handlers } from '../api/events';
import { Fleet } from './fleet.svelte';
import { markers } from './markers.svelte';

let events: Handlers;
vi.mock('../api/events', () => ({
  follow: (handlers: Handlers) => {
    events = handlers;
    return () => {};
  },
}));

const at = (second: number) => `2026-01-02T10:00:0${second}.000Z`;
const vehicle = (change: object = {}) =>
  ({
    id: 4,
    location: { latitude: 1, longitude: 2, timestamp: at(0) },
    telemetry: { is_locked: true, speed_kmh: 0 },
    diagnostics: {},
    connectivity: { status: 'online', last_seen: at(0) },
    ...change,
  }) as unknown as VehicleSummary;

/** A request that waits for its answer. */
interface Asked {
  path: string;
  answer(data: unknown, meta?: object): void;
  fail(): void;
}
let asked: Asked[];
let fleet: Fleet;

async function request(path: string): Promise<Asked> {
  await vi.advanceTimersByTimeAsync(0);
  const n = asked.findIndex((a) => a.path.startsWith(path));
  expect(n, `${path} of ${asked.map((a) => a.path).join(', ')}`).toBeGreaterThanOrEqual(0);
  return asked.splice(n, 1)[0] as Asked;
}
async function settle(work: () => void) {
  work();
  await vi.advanceTimersByTimeAsync(0);
}

beforeEach(async () => {
  vi.useFakeTimers();
  asked = [];
  vi.stubGlobal(
    'fetch',
    (path: string) =>
      new Promise((resolve) => {
        const answer = (status: number, body: object) =>
          resolve({ ok: status < 400, status, headers: new Headers(), json: async () => body });
        asked.push({
          path: path.replace('../api/v1/admin/', ''),
          answer: (data, meta = { next_cursor: null }) => answer(200, { data, meta }),
          fail: () => answer(503, { message: 'Postgres is unavailable.', error: { code: 'service_unavailable' } }),
        });
      }),
  );
  fleet = new Fleet();
  void fleet.start();
  (await request('me')).answer({ subject: 'zoe', level: 'operator' });
  await vi.advanceTimersByTimeAsync(0);
  events.connected(true, '');
});
it('takes from the markers when a vehicle was in touch, where no event has said so', async () => {
  fleet.vehicles.set(4, vehicle());
  const unfollow = markers.follow();
  const rows = (second: number) => ({
    columns: ['id', 'connectivity', 'last_seen'],
    statuses: [],
    connectivities: ['offline', 'online'],
    vehicles: [[4, 1, Date.parse(at(second)) / 1000]],
  });
  const asking = await request('fleet');
  await settle(() => asking.answer(rows(7)));
  fleet.mergeMarkers();
  expect(fleet.vehicles.get(4)?.connectivity).toEqual({ status: 'online', last_seen: at(7) });
  fleet.vehicles.set(4, vehicle({ connectivity: { status: 'offline', last_seen: at(9) } }));
  fleet.mergeMarkers();
  expect(fleet.vehicles.get(4)?.connectivity.status).toBe('offline');
  await vi.advanceTimersByTimeAsync(60_000);
  const again = await request('fleet');
  await settle(() => again.answer({ ...rows(9), vehicles: [] }));
  fleet.mergeMarkers();
  expect(fleet.vehicles.has(4)).toBe(false);
  fleet.vehicles.set(4, vehicle()); // it is back, which the markers do not know yet
  fleet.mergeMarkers();
  expect(fleet.vehicles.has(4)).toBe(true);
  unfollow();
});

it('reads the vehicles again when the markers have one that was added, once for each', async () => {
  events.reset();
  const [first, halts] = [await request('vehicles'), await request('halts')];
  await settle(() => halts.answer([]));
  await settle(() => first.answer([])); // an empty fleet
  const unfollow = markers.follow();
  const asking = await request('fleet');
  await settle(() => asking.answer({ columns: ['id'], statuses: [], connectivities: [], vehicles: [[4], [5]] }));
  fleet.mergeMarkers();
  const [added, haltsAgain] = [await request('vehicles'), await request('halts')];
  await settle(() => haltsAgain.answer([]));
  await settle(() => added.answer([vehicle()])); // 5 is none that the list has
  expect([...fleet.vehicles.keys()]).toEqual([4]);
  fleet.mergeMarkers();
  await vi.advanceTimersByTimeAsync(0);
  expect(asked.filter(({ path }) => path.startsWith('vehicles'))).toEqual([]);
  unfollow();
});

it('does not read back a vehicle that is gone', async () => {
  fleet.vehicles.set(4, vehicle());
  events.reset();
  const [vehicles, halts] = [await request('vehicles'), await request('halts')];
  fleet.remove(4);
  await settle(() => vehicles.answer([vehicle(), vehicle({ id: 5 })]));
  await settle(() => halts.answer([]));
  expect([...fleet.vehicles.keys()]).toEqual([5]);
});

afterEach(() => {
  fleet.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('keeps events that come while the fleet is read, and takes what else was read', async () => {
  fleet.vehicles.set(4, vehicle());
  events.reset();
  const [vehicles, halts] = [await request('vehicles'), await request('halts')];
  events.status({ vehicle_id: 4, at: at(5), telemetry: { speed_kmh: 40 } });
  events.status({ vehicle_id: 5, at: at(5), telemetry: { speed_kmh: 50 } });
  events.presence(5, { status: 'offline', last_seen: at(6) });
  // That it was unlocked was missed; of the vehicle that was not held, too.
  await settle(() => vehicles.answer([vehicle({ telemetry: { is_locked: false, speed_kmh: 0 } }), vehicle({ id: 5 })]));
  events.status({ vehicle_id: 4, at: at(6), telemetry: { speed_kmh: 41 } });
  await settle(() => halts.answer([]));
  expect(fleet.vehicles.get(4)?.telemetry).toEqual({ is_locked: false, speed_kmh: 41 });
  expect(fleet.vehicles.get(5)?.telemetry.speed_kmh).toBe(50);
  expect(fleet.vehicles.get(5)?.connectivity.status).toBe('offline');
  expect(fleet.loaded).toBe(true);
});

it('keeps events that come while vehicles are searched', async () => {
  const found = fleet.find({ q: 'a' });
  const vehicles = await request('vehicles?q=a');
  events.status({ vehicle_id: 4, at: at(5), telemetry: { is_locked: false } });
  vehicles.answer([vehicle()]);
  await found;
  expect(fleet.vehicles.get(4)?.telemetry.is_locked).toBe(false);
});

it('does not let an older reading replace a newer one', async () => {
  events.reset();
  const [old, oldHalts] = [await request('vehicles'), await request('halts')];
  events.reset();
  const [newer, newerHalts] = [await request('vehicles'), await request('halts')];
  await settle(() => newer.answer([vehicle({ telemetry: { is_locked: false } })]));
  await settle(() => newerHalts.answer([{ agency_id: null, reason: 'fire' }]));
  await settle(() => old.answer([vehicle()]));
  await settle(() => oldHalts.answer([]));
  expect(fleet.vehicles.get(4)?.telemetry.is_locked).toBe(false);
  expect(fleet.haltOf(1)?.reason).toBe('fire');
});

it('reads halts until it has them', async () => {
  events.halt(true, {} as never);
  await settle((await request('halts')).fail);
  expect(fleet.problem).toBe('Postgres is unavailable.');
  await vi.advanceTimersByTimeAsync(3000);
  await settle(((halts) => () => halts.answer([{ agency_id: null, reason: 'fire' }]))(await request('halts')));
  expect(fleet.haltOf(1)?.reason).toBe('fire');
  expect(fleet.problem).toBe('');
});

it('does not show the fleet as read without its halts', async () => {
  events.reset();
  (await request('vehicles')).answer([vehicle()]);
  await settle((await request('halts')).fail);
  expect(fleet.loaded).toBe(false);
  await vi.advanceTimersByTimeAsync(3000);
  (await request('vehicles')).answer([vehicle()]);
  (await request('halts')).answer([]);
  await vi.advanceTimersByTimeAsync(0);
  expect(fleet.loaded).toBe(true);
});

it('reads every open command again', async () => {
  const command = (n: number, completed: string | null) =>
    ({ id: String(n), requested_at: at(n % 5), completed_at: completed, state: 'sent', attempts: 1 }) as Command;
  for (let n = 0; n < 120; n++) fleet.mergeCommand(command(n, null));
  events.reset();
  const ended = Array.from({ length: 119 }, (_, n) => command(n, at(9)));
  (await request('vehicles')).answer([]);
  (await request('halts')).answer([]);
  const first = await request(`commands?from=${at(0)}`);
  await settle(() => first.answer(ended.slice(0, 100), { next_cursor: 'more' }));
  await settle(((second) => () => second.answer(ended.slice(100)))(await request('commands?')));
  expect([...fleet.commands.values()].filter((c) => c.completed_at === null)).toEqual([]);
  expect(fleet.commands.size).toBe(119); // the last one is of another agency now
});
