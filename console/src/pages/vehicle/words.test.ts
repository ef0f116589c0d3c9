import { describe, expect, it } from 'vitest';
import type { VehicleStatus } from '../../api/client';
import { de } from '../../texts/de';
import { en } from '../../texts/en';
import { freshness } from '../../freshness';
import { describe as inWords, headlines, wordsOf, type Reported } from './words';

const at = (minute: number) => `2026-01-02T09:${String(minute).padStart(2, '0')}:00.000Z`;

function reported(change: (status: VehicleStatus) => void = () => {}): Reported {
  const status: VehicleStatus = {
    vehicle_id: 1, status: 'available',
    location: { latitude: 48.1, longitude: 11.5, heading: 270, address: 'Marienplatz 1', timestamp: at(3) },
    telemetry: {
      speed_kmh: 0,
      mileage_km: 15230.4,
      ignition: 'off',
      gear: 'P',
      parking_brake: 'engaged',
      fuel_level_percent: 61,
      battery_level_percent: null,
      remaining_range_km: 412,
      charging_status: null,
      onboard_voltage_v: 12.6,
      is_locked: true,
      is_engine_running: false,
      doors: { front_left: 'closed', front_right: 'closed', rear_left: 'closed', rear_right: 'closed', trunk: 'closed' },
      windows: { front_left: 'closed', front_right: 'partially_open', rear_left: 'closed', rear_right: 'open' },
      sunroof: null, seatbelts: { driver: 'fastened', passenger: null }, key_status: null,
    },
    diagnostics: { dtcs: [], service_due_in_km: -200, oil_life_percent: 61, warning_lamps: ['tire_failure', 'new_lamp'] },
    connectivity: { status: 'online', last_seen: at(9), signal_quality: 'weak', firmware_version: '4.2.1' },
    oem_data: { immobilizer: 'released', modes: { eco: true } },
  };
  change(status);
  return {
    status,
    ages: {
      sections: { location: at(5), telemetry: at(8), diagnostics: at(2), connectivity: at(9), oem_data: at(1) },
      older: { 'telemetry.is_locked': at(4), 'telemetry.doors.trunk': at(1) },
    },
    vehicle: { powertrain: 'combustion', capabilities: { signals: ['telemetry.is_locked', 'telemetry.key_status'] } },
  };
}

const rows = (r: Reported, texts = en, code = 'en') =>
  Object.fromEntries(inWords(r, wordsOf(texts, code)).flatMap((group) => group.rows.map((row) => [row.key, row])));

describe('fields', () => {
  it('are words with units, in each language', () => {
    const english = rows(reported());
    expect(Object.fromEntries(Object.entries(english).map(([key, row]) => [key, row.text]))).toMatchObject({
      lock: 'locked',
      doors: 'all closed',
      windows: 'window front right partly open, window rear right open',
      seatbelts: 'driver fastened',
      fuel: '61 %',
      range: '412 km',
      voltage: '12.6 V',
      speed: '0 km/h',
      gear: 'P (park)',
      odometer: '15,230 km',
      heading: 'west (270°)',
      dtcs: 'none',
      lamps: 'tyre failure, new lamp',
      serviceDue: 'overdue by 200 km',
      signal: 'weak',
      'oem_data.immobilizer': 'released',
      'oem_data.modes': '{"eco":true}',
    });
    const german = rows(reported(), de, 'de');
    expect([german.odometer?.text, german.voltage?.text, german.doors?.text, german.serviceDue?.text]).toEqual([
      '15.230 km',
      '12,6 V',
      'alle geschlossen',
      'überfällig seit 200 km',
    ]);
  });
  it('stand out where something is wrong', () => {
    const got = rows(
      reported((s) => {
        s.telemetry.doors.trunk = 'open';
        s.telemetry.fuel_level_percent = 0;
        s.telemetry.onboard_voltage_v = 11.2;
        s.diagnostics.dtcs = ['P0420'];
      }),
    );
    expect([
      got.doors?.text,
      got.doors?.tone,
      got.fuel?.tone,
      got.voltage?.tone,
      got.dtcs?.tone,
      got.lamps?.tone,
      got.signal?.tone,
      got.lock?.tone,
    ]).toEqual(['boot open', 'warn', 'warn', 'warn', 'bad', 'bad', 'warn', 'plain']);
  });
  it('name doors where not all are reported', () => {
    expect(
      rows(reported((s) => (s.telemetry.doors.trunk = s.telemetry.doors.rear_left = s.telemetry.doors.rear_right = null))).doors?.text,
    ).toBe('front left and front right closed');
  });
  it('are as old as they are, and several as the oldest', () => {
    const got = rows(reported());
    expect([got.lock?.at, got.doors?.at, got.speed?.at, got.address?.at, got.contact?.at, got['oem_data.immobilizer']?.at]).toEqual([
      at(4),
      at(1),
      at(8),
      at(3),
      null,
      at(1),
    ]);
  });
  it('keep the names of the API', () => {
    expect(rows(reported()).lock?.title).toBe('telemetry.is_locked: yes');
  });
  it('tell what was never reported from what is not known any more, and leave out what a powertrain cannot have', () => {
    const groups = inWords(reported((s) => (s.telemetry.is_locked = null)), wordsOf(en, 'en'));
    expect(groups.find((g) => g.name === 'doors')).toMatchObject({ missing: ['Sunroof'] });
    expect(
      groups
        .find((g) => g.name === 'doors')
        ?.rows.filter((row) => row.tone === 'none')
        .map((row) => row.key),
    ).toEqual(['lock', 'key']);
    expect(groups.find((g) => g.name === 'energy')?.missing).toEqual([]);
  });
  it('that are new are shown by their names', () => {
    const got = rows(reported((s) => Object.assign(s.telemetry, { trailer: { is_coupled: true } })));
    expect(got['telemetry.trailer.is_coupled']).toMatchObject({ label: 'trailer is coupled', text: 'yes', at: at(8) });
  });
});

describe('headlines', () => {
  const of = (change?: (s: VehicleStatus) => void) =>
    Object.fromEntries(headlines(reported(change), wordsOf(en, 'en')).map((h) => [h.key, h]));
  it('say what matters', () => {
    const got = of();
    expect(got.lock).toMatchObject({
      text: 'locked',
      at: at(4),
      details: [
        { text: 'Doors all closed', at: at(1) },
        { text: 'window front right partly open, window rear right open', tone: 'warn', at: at(8) },
      ],
    });
    expect(got.energy).toMatchObject({ label: 'Fuel', text: '61 %', details: [{ text: 'Range 412 km' }, { text: '12 V 12.6 V' }] });
    expect(got.driving).toMatchObject({ text: 'Ignition off', at: at(8) });
    expect(got.position).toMatchObject({ text: 'Marienplatz 1', at: at(3) });
    expect(got.faults).toMatchObject({ text: 'tyre failure, new lamp', tone: 'bad', at: at(2) });
  });
  it('are as old as the oldest fault', () =>
    expect(of((s) => (s.diagnostics.dtcs = ['P0420'])).faults).toMatchObject({ text: 'P0420, tyre failure, new lamp', at: at(2) }));
  it('name both energies of a plug-in hybrid', () =>
    expect(of((s) => (s.telemetry.battery_level_percent = 9)).energy).toMatchObject({
      label: 'Energy',
      text: 'Battery 9 %, Fuel 61 %',
      tone: 'warn',
    }));
  it('say that it drives', () => expect(of((s) => (s.telemetry.speed_kmh = 48)).driving?.text).toBe('Drives, 48 km/h'));
  it('of a vehicle that reports nothing claim nothing', () => {
    const got = of((s) => {
      s.telemetry = { ...s.telemetry, is_locked: null, fuel_level_percent: null, ignition: null, speed_kmh: null };
      s.location = { latitude: null, longitude: null, heading: null, address: null, timestamp: null };
      s.diagnostics = { ...s.diagnostics, dtcs: null, warning_lamps: null };
    });
    for (const headline of Object.values(got)) expect(headline).toMatchObject({ text: 'not reported', tone: 'none', at: null });
  });
});

it.each([
  [9, false, 'fresh'],
  [11, false, 'aging'],
  [59, false, 'aging'],
  [61, false, 'old'],
  [1, true, 'fresh'],
  [3, true, 'aging'],
  [11, true, 'old'],
])('%s minutes, moving %s: %s', (age, moving, want) => {
  expect(freshness(at(0), Date.parse(at(0)) + age * 60_000, moving)).toBe(want);
});
it('what was never reported is old', () => expect(freshness(null, 0, false)).toBe('old'));
