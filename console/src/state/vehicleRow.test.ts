import { describe, expect, it } from 'vitest';
import type { VehicleSummary } from '../api/client';
import { passes, sorted } from './vehicleOrder';
import { decode, keepNewer, withReport, withSummary, type VehicleRow } from './vehicleRow';

const rows = {
  columns: [
    'later', 'id', 'agency_id', 'status', 'connectivity', 'latitude', 'longitude', 'located_at', 'locked', 'energy_percent', 'last_seen',
    'locked_at', 'energy_at', 'plate_number', 'model', 'unit', 'powertrain', 'charging', 'charging_at',
  ],
  statuses: ['available', 'in_use'],
  connectivities: ['online', 'offline'],
  powertrains: ['combustion', 'electric'],
  models: ['Opel Corsa'],
  vehicles: [
    [9, 42, 1, 1, 0, 48.1, 11.5, 1_000, 0, 61.5, 1_001, 900, 1_000, 'M-IM 42', 0, 'unit-42', 1, 1, 1_000],
    [9, 43, 2, 0, 1, null, null, null, null, null, null, null, null, 'M-IM 43', 0, null, 0, null, null],
  ],
};
const [car, other] = decode(rows) as [VehicleRow, VehicleRow];
const at = (second: number) => new Date(second * 1000).toISOString();
const report = (second: number, change: object) => ({ vehicle_id: 42, at: at(second), ...change });

describe('rows', () => {
  it('are read by the names of columns', () => {
    expect(car).toEqual({
      id: 42,
      plate: 'M-IM 42',
      model: 'Opel Corsa',
      unit: 'unit-42',
      agency: 1,
      status: 'in_use',
      powertrain: 'electric',
      contact: 'online',
      seenAt: 1_001_000,
      latitude: 48.1,
      longitude: 11.5,
      locatedAt: 1_000_000,
      locked: false,
      lockedAt: 900_000,
      energy: 61.5,
      energyAt: 1_000_000,
      charging: true,
      chargingAt: 1_000_000,
      text: '42 m-im 42 opel corsa unit-42',
    });
    expect(other).toMatchObject({ latitude: null, locatedAt: null, energy: null, contact: 'offline', unit: null });
  });

  it('of the version before are named by their ids', () => {
    const [old] = decode({ ...rows, columns: rows.columns.slice(0, 13) });
    expect(old).toMatchObject({ id: 42, plate: '#42', model: '', unit: null, locked: false });
  });
});

describe('reports', () => {
  it('give each value its own time, and leave out a late one', () => {
    const after = withReport(car, report(950, { telemetry: { is_locked: true, battery_level_percent: 5 }, location: { latitude: 50 } }));
    expect(after).toEqual({ ...car, locked: true, lockedAt: 950_000 }); // energy and place are newer
    expect(withReport(car, report(2000, { telemetry: { battery_level_percent: 5, fuel_level_percent: 9 } }))).toEqual({
      ...car, energy: 5, energyAt: 2_000_000, seenAt: 2_000_000,
    });
  });
  it('keep what they do not have, and take null for what is known no more', () => {
    expect(withReport(car, report(2000, { telemetry: { charging_status: 'disconnected' } }))).toMatchObject({
      charging: false, chargingAt: 2_000_000,
    });
    expect(withReport(car, report(2000, { telemetry: { is_locked: null } }))).toEqual({
      ...car, locked: null, lockedAt: 2_000_000, seenAt: 2_000_000,
    });
  });
  it('move a vehicle by the time of its place', () => {
    const late = { location: { latitude: 50, timestamp: at(1) } };
    expect(withReport(car, report(2000, late))).toEqual({ ...car, seenAt: 2_000_000 });
    const near = withReport({ ...car, address: 'Marienplatz' }, report(2000, { location: { latitude: 48.10001 } }));
    expect(near).toMatchObject({ latitude: 48.10001, longitude: 11.5, locatedAt: 2_000_000, address: 'Marienplatz' });
    expect(withReport(near, report(2001, { location: { latitude: 48.2 } })).address).toBeUndefined();
  });
  it.each([
    [{ ignition: 'on' }, true],
    [{ speed_kmh: 3 }, true],
    [{ ignition: 'off' }, false],
    [{ speed_kmh: 0 }, undefined], // at a traffic light
  ])('with %j: it moves, %s', (telemetry, moving) => expect(withReport(car, report(2000, { telemetry })).moving).toBe(moving));
  it('of a vehicle that drives on as fast have its speed, which is in none of them', () => {
    const drives = withReport({ ...car, locatedAt: 1_990_000 }, report(2000, { location: { latitude: 48.101 } }));
    expect(drives.speed).toMatchObject({ kmh: expect.closeTo(40, 0), at: 2_000_000 });
    const known = withReport({ ...car, speed: { kmh: 50, at: 0 } }, report(2000, { location: { latitude: 48.2 } }));
    expect(known.speed).toEqual({ kmh: 50, at: 2_000_000 });
    expect(withReport(car, report(2000, { telemetry: { is_locked: true } })).speed).toBeUndefined();
  });
  it('say when the unit was last in touch', () => {
    expect(withReport(car, report(2000, { connectivity: { status: 'standby' } }))).toEqual({
      ...car, contact: 'standby', seenAt: 2_000_000,
    });
  });
});

describe('what is read again', () => {
  it('keeps what is newer and what was read in particular, and takes the rest', () => {
    const known = { ...car, plate: 'old', contact: 'offline', locked: true, lockedAt: 950_500, address: 'Marienplatz', moving: false };
    expect(keepNewer(car, known)).toEqual({ ...car, locked: true, lockedAt: 950_500, address: 'Marienplatz', moving: false });
    const moved = { ...car, latitude: 48.2, locatedAt: 1_100_000 };
    expect(keepNewer(moved, known)).toMatchObject({ latitude: 48.2, locked: true });
    expect(keepNewer(moved, known).address).toBeUndefined();
    expect(keepNewer(car, { ...known, address: null }).address).toBeUndefined(); // the service may have found one since
    expect(keepNewer(car, undefined)).toBe(car);
  });
});

it('a vehicle that was read in particular has its address, and whether it drives', () => {
  const summary = {
    id: 42, plate_number: 'M-IM 9', brand: 'Fiat', model: '500e', unit: null, agency_id: 3, powertrain: 'electric', status: 'booked',
    connectivity: { status: 'offline', last_seen: at(900) },
    location: { latitude: 48.1, longitude: 11.5, timestamp: at(1000), address: 'Marienplatz' },
    telemetry: { ignition: 'on', speed_kmh: 0, is_locked: true, battery_level_percent: 60, fuel_level_percent: null },
    reported_at: { is_locked: at(1000), battery_level_percent: at(900) },
  } as unknown as VehicleSummary;
  expect(withSummary(car, summary)).toEqual({
    ...car, plate: 'M-IM 9', model: 'Fiat 500e', unit: null, agency: 3, status: 'booked', address: 'Marienplatz', moving: true,
    locked: true, lockedAt: 1_000_000, text: '42 m-im 9 fiat 500e ',
  });
});

describe('filters', () => {
  it.each([
    [{}, true],
    [{ agency: '1' }, true],
    [{ agency: '2' }, false],
    [{ status: 'available' }, false],
    [{ contact: 'offline' }, false],
    [{ lock: 'unlocked' }, true],
    [{ lock: 'locked' }, false],
    [{ energy: 'low' }, false],
    [{ q: 'corsa M-im' }, true],
    [{ q: 'unit-42 golf' }, false],
    [{ q: 'mim42' }, true],
    [{ q: 'corsa M-IM42' }, true],
    [{ q: 'mim43' }, false],
  ])('%j: %s', (filter, shown) => expect(passes(filter)(car)).toBe(shown));
  it('find low energy and a lock only where they are known', () => {
    expect(passes({ energy: 'low' })({ ...car, energy: 19 })).toBe(true);
    expect(passes({ energy: 'low' })(other)).toBe(false);
    expect(passes({ lock: 'unlocked' })(other)).toBe(false);
  });
});

it('vehicles are sorted by a column, and by id where it is the same', () => {
  const ids = (by: string) => sorted([{ ...car, id: 44 }, other, car, { ...car, id: 9, plate: 'M-IM 9' }], by).map((v) => v.id);
  expect(ids('')).toEqual([9, 42, 43, 44]);
  expect(ids('-id')).toEqual([44, 43, 42, 9]);
  expect(ids('plate')).toEqual([9, 42, 44, 43]);
  expect(ids('-lock')).toEqual([9, 42, 44, 43]); // not known: last
  expect(ids('status')).toEqual([43, 9, 42, 44]);
  expect(ids('constructor')).toEqual([9, 42, 43, 44]);
});
