// @vitest-environment happy-dom
import { flushSync } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Command } from '../api/client';
import type { Handlers } from '../api/events';
import { commands } from './commands.svelte';
import { halts } from './halts.svelte';
import { session } from './session.svelte';
import { Stream } from './stream.svelte';
import { vehicles } from './vehicles.svelte';

let events: Handlers;
vi.mock('../api/events', () => ({
  follow: (handlers: Handlers) => {
    events = handlers;
    return () => {};
  },
}));

const at = (second: number) => `2026-01-02T10:00:0${second}.000Z`;
/** Vehicles with whether they are locked, as the service answers with them. */
const rows = (...vehicles: [id: number, locked: number][]) => ({
  columns: ['id', 'locked', 'powertrain'],
  statuses: [],
  connectivities: [],
  powertrains: ['electric'],
  vehicles: vehicles.map((row) => [...row, 0]),
});
const read = async (...all: [id: number, locked: number][]) => {
  events.reset();
  const [reading, halts] = [await request('fleet'), await request('halts')];
  await settle(() => reading.answer(rows(...all)));
  await settle(() => halts.answer([]));
};

/** A request that waits for its answer. */
interface Asked {
  path: string;
  answer(data: unknown, meta?: object): void;
  fail(): void;
}
let asked: Asked[];
let stream: Stream;

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
  session.me = null;
  stream = new Stream();
  void stream.start();
  (await request('me')).answer({ subject: 'zoe', level: 'operator' });
  await vi.advanceTimersByTimeAsync(0);
  events.connected(true, '');
});
const shown = () => vi.advanceTimersByTimeAsync(1000);
afterEach(async () => {
  stream.stop();
  commands.all.clear();
  await shown();
  for (const { id } of vehicles.all) vehicles.remove(id);
  await shown();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('keeps events that come while the fleet is read, and takes what else was read', async () => {
  events.reset();
  const [reading, halts] = [await request('fleet'), await request('halts')];
  events.status({ vehicle_id: 4, at: at(5), telemetry: { battery_level_percent: 40 } });
  events.presence(5, { status: 'offline', last_seen: at(6) });
  await settle(() => reading.answer(rows([4, 0], [5, 1])));
  events.status({ vehicle_id: 4, at: at(6), telemetry: { battery_level_percent: 39 } });
  await settle(() => halts.answer([]));
  expect(vehicles.get(4)).toMatchObject({ locked: false, energy: 39 });
  expect(vehicles.get(5)).toMatchObject({ locked: true, contact: 'offline', seenAt: Date.parse(at(6)) });
  expect(stream.loaded).toBe(true);
});

it('does not read back a vehicle that is gone', async () => {
  await read([4, 0]);
  events.reset();
  const [reading, halts] = [await request('fleet'), await request('halts')];
  vehicles.remove(4);
  await settle(() => reading.answer(rows([4, 0], [5, 0])));
  await settle(() => halts.answer([]));
  await shown();
  expect(vehicles.all.map((v) => v.id)).toEqual([5]);
});

it('reads a vehicle whose booking has changed, those that are visible once, and lets go of one that is not there', async () => {
  await read([4, 0], [5, 0], [6, 0]);
  events.booking({ vehicle_id: 4, booking_id: 1 });
  vehicles.readDetails([5, 6]);
  await vi.advanceTimersByTimeAsync(600);
  const summary = {
    plate_number: 'M-IM 4', brand: 'Opel', model: 'Corsa', unit: null, agency_id: 1, powertrain: 'electric', status: 'booked',
    connectivity: { status: 'online', last_seen: at(1) }, reported_at: {}, telemetry: {},
    location: { latitude: 1, longitude: 2, timestamp: at(1), address: null },
  };
  const booked = await request('vehicles?ids=4&');
  await settle(() => booked.answer([{ ...summary, id: 4 }]));
  await vi.advanceTimersByTimeAsync(300);
  const details = await request('vehicles?ids=5,6&');
  await settle(() => details.answer([{ ...summary, id: 5 }]));
  await shown();
  expect(vehicles.all.map((v) => [v.id, v.plate, v.status])).toEqual([[4, 'M-IM 4', 'booked'], [5, 'M-IM 4', 'booked']]);
  vehicles.readDetails([5, 6]);
  await vi.advanceTimersByTimeAsync(600);
  expect(asked).toEqual([]);
});

it('reads all vehicles whose bookings have changed, however many they are', async () => {
  for (let id = 1; id <= 150; id++) events.booking({ vehicle_id: id, booking_id: id });
  await vi.advanceTimersByTimeAsync(300);
  const first = await request('vehicles?ids=1,2,');
  await settle(() => first.answer([]));
  await vi.advanceTimersByTimeAsync(300);
  await settle(async () => (await request('vehicles?ids=101,102,')).answer([]));
});

it('shows the first of many changes immediately, and the others together', async () => {
  await read([4, 0]);
  await vi.advanceTimersByTimeAsync(500);
  const seen: (string | undefined)[] = [];
  const stop = $effect.root(() => {
    $effect(() => void seen.push(vehicles.all[0]?.contact));
  });
  flushSync();
  for (const status of ['standby', 'offline', 'online']) {
    events.presence(4, { status, last_seen: null });
    await vi.advanceTimersByTimeAsync(10);
    flushSync();
  }
  await vi.advanceTimersByTimeAsync(500);
  flushSync();
  stop();
  expect(seen).toEqual(['unknown', 'standby', 'online']);
});

it('reads all again each minute while a page shows them: what was added is no event', async () => {
  await read([4, 0]);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(asked).toEqual([]);
  const unfollow = vehicles.follow();
  await settle(((reading) => () => reading.answer(rows([4, 0], [5, 0])))(await request('fleet')));
  await shown();
  expect(vehicles.all.map((v) => v.id)).toEqual([4, 5]);
  await vi.advanceTimersByTimeAsync(60_000);
  await settle((await request('fleet')).fail);
  expect(vehicles.problem).toBe('Postgres is unavailable.');
  unfollow();
});

it('does not let an older reading replace a newer one', async () => {
  events.reset();
  const [old, oldHalts] = [await request('fleet'), await request('halts')];
  events.reset();
  const [newer, newerHalts] = [await request('fleet'), await request('halts')];
  await settle(() => newer.answer(rows([4, 0])));
  await settle(() => newerHalts.answer([{ agency_id: null, reason: 'fire' }]));
  await settle(() => old.answer(rows([4, 1])));
  await settle(() => oldHalts.answer([]));
  expect(vehicles.get(4)?.locked).toBe(false);
  expect(halts.of(1)?.reason).toBe('fire');
});

it('reads halts until it has them', async () => {
  events.halt(true, {} as never);
  await settle((await request('halts')).fail);
  expect(stream.problem).toBe('Postgres is unavailable.');
  await vi.advanceTimersByTimeAsync(3000);
  await settle(((halts) => () => halts.answer([{ agency_id: null, reason: 'fire' }]))(await request('halts')));
  expect(halts.of(1)?.reason).toBe('fire');
  expect(stream.problem).toBe('');
});

it('does not show the fleet as read without its halts', async () => {
  events.reset();
  (await request('fleet')).answer(rows([4, 0]));
  await settle((await request('halts')).fail);
  expect(stream.loaded).toBe(false);
  await vi.advanceTimersByTimeAsync(3000);
  (await request('fleet')).answer(rows([4, 0]));
  (await request('halts')).answer([]);
  await vi.advanceTimersByTimeAsync(0);
  expect(stream.loaded).toBe(true);
});

it('reads every open command again', async () => {
  const command = (n: number, completed: string | null) =>
    ({ id: String(n), requested_at: at(n % 5), completed_at: completed, state: 'sent', attempts: 1 }) as Command;
  for (let n = 0; n < 120; n++) commands.take(command(n, null));
  events.reset();
  const ended = Array.from({ length: 119 }, (_, n) => command(n, at(9)));
  (await request('fleet')).answer(rows());
  (await request('halts')).answer([]);
  const first = await request(`commands?from=${at(0)}`);
  await settle(() => first.answer(ended.slice(0, 100), { next_cursor: 'more' }));
  await settle(((second) => () => second.answer(ended.slice(100)))(await request('commands?')));
  expect([...commands.all.values()].filter((c) => c.completed_at === null)).toEqual([]);
  expect(commands.all.size).toBe(119); // the last one is of another agency now
});
