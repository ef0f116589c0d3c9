// The console's pages with a service that answers what a test says. For tests with the environment happy-dom.
import { mount, unmount, tick } from 'svelte';
import { expect, vi } from 'vitest';
import type { AdminBooking, BookedCharge, Command, Note, Unit, Vehicle, VehicleStatus, VehicleSummary } from '../api/client';
import App from '../App.svelte';
import type { FleetRows } from '../state/vehicleRow';
import { language } from '../texts/index.svelte';

export const at = (second: number) => new Date(Date.UTC(2026, 0, 2, 10, 0, second)).toISOString();
export const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

export const summary = (id: number, change: Partial<VehicleSummary> = {}): VehicleSummary => ({
  id,
  agency_id: 1,
  unit: `unit-${id}`,
  protocol: 'v1',
  state_stored: false,
  status: 'available',
  powertrain: 'electric',
  plate_number: 'M-IM 2101',
  brand: 'Opel',
  model: 'Corsa',
  year: null,
  color: null,
  category: null,
  image: null,
  features: [],
  connectivity: { status: 'online', last_seen: at(0) },
  location: { latitude: null, longitude: null, timestamp: null, address: null, heading: null },
  telemetry: {
    speed_kmh: 0,
    ignition: 'off',
    is_locked: true,
    fuel_level_percent: null,
    battery_level_percent: 80,
    remaining_range_km: null,
    charging_status: null,
  },
  diagnostics: { dtcs: ['P0420', 'P0420'], warning_lamps: ['abs', 'abs'] },
  capabilities: { commands: ['lock', 'unlock', 'disable-driving', 'attention'] },
  reported_at: {
    speed_kmh: at(0),
    ignition: at(0),
    is_locked: at(0),
    fuel_level_percent: null,
    battery_level_percent: at(0),
    remaining_range_km: null,
    charging_status: null,
    dtcs: at(0),
    warning_lamps: at(0),
  },
  ...change,
});

const promises = { signed: true, expiring: true, deduplicated: true, correlated: true, confirmed: true };

export const vehicle = (id: number): Vehicle => ({
  ...(summary(id) as unknown as Vehicle),
  promises,
  keys: ['a', 'a'],
  capabilities: {
    commands: ['lock', 'unlock', 'enable-driving', 'disable-driving', 'unlock-and-enable-driving', 'lock-and-disable-driving', 'attention'],
    refresh: true,
    signals: ['lights'],
  },
});

const status = (id: number): VehicleStatus => {
  const { connectivity, location, telemetry, diagnostics, status: platform } = summary(id);
  const none = { front_left: null, front_right: null, rear_left: null, rear_right: null };
  return {
    vehicle_id: id, status: platform, location, oem_data: { a: 1, b: 1 },
    connectivity: { ...connectivity, signal_quality: null, firmware_version: null },
    telemetry: {
      ...telemetry,
      mileage_km: null,
      gear: null,
      parking_brake: null,
      onboard_voltage_v: null,
      is_engine_running: null,
      doors: { ...none, trunk: null },
      windows: none,
      sunroof: null,
      seatbelts: { driver: null, passenger: null },
      key_status: null,
    },
    diagnostics: { ...diagnostics, service_due_in_km: null, oil_life_percent: null },
  };
};

export const command = (n: number, change: Partial<Command> = {}): Command => ({
  id: uuid(n),
  vehicle_id: 1,
  booking_id: null,
  action: 'lock',
  parameters: null as never,
  state: 'succeeded',
  outcome: 'executed',
  requested_by: 'zoe',
  requested_at: at(1),
  sent_at: at(1),
  received_at: at(1),
  completed_at: at(1),
  deadline: at(11),
  expires_at: at(31),
  attempts: 2,
  published_at: [at(1), at(1)],
  latency_ms: 0,
  late: false,
  contradicted: false,
  reason: null,
  detail: null,
  reported: { is_locked: true },
  assurance: promises,
  ...change,
});

const charge = (n: number, change: Partial<BookedCharge> = {}) =>
  ({
    id: uuid(n),
    payment_id: 'p',
    kind: 'fee',
    number: 1,
    state: 'paid',
    amount: 500,
    settled: 0,
    currency: 'EUR',
    goal: null,
    capture_amount: null,
    fee: 'cleaning',
    reason: 'dirt',
    card: 'visa 4242',
    decline_code: null,
    attempts: 2,
    next_attempt_at: null,
    paid_at: at(3),
    created_at: at(2),
    refund_of: null,
    requested_by: 'zoe',
    booking_id: 1,
    booking_reference: 'BK-2026-00001',
    agency_id: 1,
    client: 'anna',
    vehicle: { id: 1, plate_number: 'M-IM 2101' },
    ...change,
  }) as BookedCharge;

export const booking = (id: number, change: Partial<AdminBooking> = {}) =>
  ({
    id, reference: `BK-2026-0000${id}`, status: 'active', start_date: at(0), end_date: at(3600), actual_start: at(0), actual_end: null,
    vehicle: { id: 1, plate_number: 'M-IM 2101', brand: 'Opel', model: 'Corsa', year: null, color: null, category: null, image: null },
    pickup_station: { id: 1, name: 'Hbf' },
    dropoff_station: { id: 1, name: 'Hbf' },
    pricing: { currency: 'EUR', hourly_rate: 100, duration_hours: 1, tax: 0, rental_total: 100, deposit: 0, lines: [], tariff: null },
    payment: { status: 'paid', method: 'visa 4242', charged: 100, refunded: 0, held: 0, final: true },
    fees: [],
    can_cancel: false,
    can_extend: true,
    paused: false,
    transition: null,
    created_at: at(0),
    agency_id: 1,
    client: 'anna',
    extensions: 0,
    limits: { refund: 100, capture: 0, fee: 100 },
    charges: [charge(1), charge(1), charge(2)],
    ...change,
  }) as unknown as AdminBooking;

export const unit = (vehicle: number, change: Partial<Unit> = {}): Unit => ({
  unit: 'same',
  vehicle_id: vehicle,
  plate_number: 'M-IM 2101',
  agency_id: 1,
  protocol: 'v1',
  connectivity: { status: 'online', last_seen: at(0) },
  firmware_version: '1',
  signal_quality: 'weak',
  rsrp_dbm: -110,
  clock: { error_ms: 0, measured_at: at(0) },
  reconnects: 0,
  rejects: [reject, reject],
  rejected_commands: [reject, reject],
  keys: ['a', 'a'],
  problems: ['commands', 'commands', 'rejects'],
  ...change,
});
const reject = { reason: 'signature', count: 1, last_at: at(0) };

const activity = (id: number, change: object = {}) => ({
  id,
  at: at(2),
  actor: 'zoe',
  role: 'operator',
  agency_id: 1,
  vehicle_id: 1,
  booking_id: 1,
  action: 'command.lock',
  outcome: 'executed',
  code: null,
  command_id: uuid(1),
  request_id: 'r',
  latency_ms: 1,
  late: false,
  note: null,
  parameters: {},
  ...change,
});

const card = (id: number) => ({
  id, brand: 'visa', last_four: '4242', exp_month: 2, exp_year: 2030, is_default: id === 1, created_at: at(0),
});

const listedBulk = (n: number) => ({
  id: uuid(n),
  action: 'lock',
  parameters: null,
  requested_by: 'zoe',
  requested_at: at(1),
  summary: { total: 2, open: 0, executed: 1, not_executed: 1, failed: 0, unknown: 0 },
});

const note: Note = { at: at(2), by: 'zoe', vehicle_id: 1, booking_id: null, text: 'The spare key\nis in the depot.' };

export const alertRule = (rule: string, change: object = {}) => ({
  rule, enabled: true, for_s: 600, levels: [{ severity: 'warning', limit: null }], ...change,
});
const alertRules = [alertRule('silent'), alertRule('lamp')];

const seconds = (at: string | null) => (at === null ? null : Date.parse(at) / 1000);

/** The vehicles of a list as GET /admin/fleet has them. */
export const rowsOf = (vehicles: VehicleSummary[]): FleetRows => ({
  columns: ['id', 'agency_id', 'status', 'connectivity', 'latitude', 'longitude', 'located_at', 'locked', 'energy_percent', 'last_seen',
    'locked_at', 'energy_at', 'plate_number', 'model', 'unit', 'powertrain', 'charging', 'charging_at'],
  statuses: vehicles.map((v) => v.status),
  connectivities: vehicles.map((v) => v.connectivity.status),
  powertrains: ['electric'],
  models: vehicles.map((v) => `${v.brand} ${v.model}`),
  vehicles: vehicles.map(({ location, telemetry, ...v }, n) => [
    v.id, v.agency_id, n, n, location.latitude, location.longitude, seconds(location.timestamp),
    telemetry.is_locked === null ? null : Number(telemetry.is_locked), telemetry.battery_level_percent, seconds(v.connectivity.last_seen),
    seconds(v.reported_at.is_locked), seconds(v.reported_at.battery_level_percent), v.plate_number, n, v.unit, 0, Number(v.id === 2), null,
  ]),
});

/** An answer with all of its envelope. */
export class Envelope {
  constructor(
    readonly code: number,
    readonly body: object,
  ) {}
}

/** What the service answers, by the beginning of the path below /api/v1/admin/; the longest counts. */
export type Answers = Record<string, unknown>;

const twice = <Item>(...items: Item[]) => [...items, ...items];

/** Everything there is, doubled: the same item twice, and another one that reads the same. */
export const doubled: Answers = {
  me: { subject: 'zoe', role: 'admin', level: 'administrator', agency_id: null, scopes: ['halt'] },
  vehicles: twice(summary(1, { unit: '352099004170375' }), summary(2), summary(10, { unit: '352099004173700' })),
  'vehicles/1': vehicle(1),
  'vehicles/1/status': status(1),
  'vehicles/1/commands': twice(command(1), command(2), command(3)),
  'vehicles/1/history': null,
  stations: twice(
    { id: 1, agency_id: 1, name: 'Hbf', latitude: 48, longitude: 11 },
    { id: 2, agency_id: 1, name: 'Hbf', latitude: 48, longitude: 11 },
  ),
  halts: twice(
    { agency_id: null, reason: 'fire', by: 'zoe', since: at(0), effect: null },
    { agency_id: 1, reason: 'fire', by: 'zoe', since: at(0), effect: null },
  ),
  commands: twice(command(1), command(2)),
  [`commands/${uuid(1)}`]: command(1),
  'commands?bulk=': {
    id: uuid(9),
    action: 'lock',
    requested_by: 'zoe',
    requested_at: at(1),
    items: twice(
      { vehicle_id: 1, command: command(1), message: null, error: null },
      { vehicle_id: 2, command: null, message: 'No.', error: { code: 'x' } },
    ),
  },
  'fleet/free': [1, 2].map((id) => ({ vehicle_id: id, rental_total: 13.09 + id, deposit: 0, currency: 'EUR' })),
  'fleet/utilisation': { from: at(0), to: at(9), vehicles: 3, used_hours: 168, percent: 33.3, vehicle_hours: { 1: 12.5, 2: 0 } },
  'bulk-commands': twice(listedBulk(9), listedBulk(8)),
  activity: twice(activity(1), activity(2), activity(3, { action: 'charge.attempt' })),
  'vehicles/1/notes': twice(note, { ...note, booking_id: 1 }),
  'bookings/1/notes': twice(note),
  bookings: twice(booking(1), booking(2)),
  'bookings/1': booking(1),
  charges: twice(charge(1), charge(2)),
  agencies: twice(
    { id: 1, code: 'A', name: 'Isar', vehicles: 1, stations: 1 },
    { id: 2, code: 'B', name: 'Isar', vehicles: 1, stations: 1 },
  ),
  'agencies/1/clients/anna/payment-methods': twice(card(1), card(2)),
  'agencies/1/keys': [
    { id: 'ak_1', agency_id: 1, agency_code: 'A', state: 'active', retires_at: null, created_at: at(0) },
    { id: 'ak_2', agency_id: 1, agency_code: 'A', state: 'revoked', retires_at: null, created_at: at(0) },
  ],
  'agencies/1/alert-rules': new Envelope(200, { data: { rules: alertRules }, meta: { defaults: alertRules } }),
  units: twice(unit(1), unit(2)),
  'units/unknown': twice({ unit: 'same', first_seen: at(0), last_seen: at(0), messages: 1 }),
};

export interface Pages {
  /** Shows a page, and waits until something is on it. */
  open(hash: string, selector: string): Promise<void>;
  /** What a selector finds, as text. */
  texts(selector: string): string[];
  until(what: () => unknown): Promise<void>;
  /** Sends an event of the service. */
  send(event: string, data: object): Promise<void>;
  /** Presses a key where the focus is; returns whether the page leaves it to the browser. */
  press(key: string, init?: KeyboardEventInit): Promise<boolean>;
  /** What was logged as an error. */
  errors: unknown[];
  /** The requests that were sent, such as "GET vehicles?limit=100". */
  requests: string[];
  close(): void;
}

/** Opens the console. Answers may change later. */
export async function openConsole(answers: Answers): Promise<Pages> {
  const errors: unknown[] = [];
  const requests: string[] = [];
  const logged = vi.spyOn(console, 'error').mockImplementation((...all) => void errors.push(all));
  const uncaught = (event: ErrorEvent) => void errors.push(event.error ?? event.message);
  addEventListener('error', uncaught);
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  vi.stubGlobal('Path2D', class {}); // happy-dom draws on no canvas
  vi.stubGlobal('fetch', async (address: string, init: RequestInit = {}) => {
    const path = address.replace(/^\.\.\/(api\/v1\/admin\/)?/, '');
    requests.push(`${init.method ?? 'GET'} ${path}`);
    const json = (code: number, body: object) => ({
      ok: code < 400,
      status: code,
      statusText: '',
      headers: new Headers(),
      json: async () => JSON.parse(JSON.stringify(body)),
    });
    if (path === 'events')
      return { ok: true, status: 200, body: new ReadableStream({ start: (controller) => void (stream = controller) }) };
    const found = Object.keys(answers)
      .filter((name) => path === name || path.startsWith(name.endsWith('=') ? name : `${name}?`))
      .sort((a, b) => b.length - a.length)[0];
    const all = answers.vehicles;
    const answer = found !== undefined ? answers[found] : path === 'fleet' && Array.isArray(all) ? rowsOf(all) : undefined;
    if (answer === undefined || answer === null) return json(404, { message: 'It is not there.', error: { code: 'not_found' } });
    const data = typeof answer === 'function' ? await answer(path, init) : answer;
    if (data instanceof Envelope) return json(data.code, data.body);
    const cursor = Array.isArray(data) && 'next' in data ? data.next : null;
    return json(200, { success: true, message: '', data, meta: { next_cursor: cursor, sections: {}, older: {}, source: 'cache' } });
  });
  await language.begin();
  const app = mount(App, { target: document.body });
  const pages: Pages = {
    errors,
    requests,
    texts: (selector) => [...document.querySelectorAll(selector)].map((e) => (e.textContent ?? '').replace(/\s+/g, ' ').trim()),
    until: (what) => vi.waitFor(() => expect(what(), document.body.textContent ?? '').toBeTruthy(), { timeout: 20_000, interval: 20 }),
    async open(hash, selector) {
      location.hash = hash;
      dispatchEvent(new Event('hashchange'));
      await tick();
      await pages.until(() => document.querySelector(selector));
      // The console loads its dialogs while the browser is idle.
      await pages.until(() => document.querySelectorAll('dialog').length > 2);
    },
    async send(event, data) {
      await pages.until(() => stream);
      stream?.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
      await new Promise((done) => setTimeout(done));
      await tick();
    },
    async press(key, init = {}) {
      const left = (document.activeElement ?? document.body).dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...init }),
      );
      await tick();
      return left;
    },
    close() {
      void unmount(app);
      removeEventListener('error', uncaught);
      logged.mockRestore();
      vi.unstubAllGlobals();
      document.body.innerHTML = '';
    },
  };
  return pages;
}
