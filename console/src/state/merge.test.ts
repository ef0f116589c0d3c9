import { describe, expect, it } from 'vitest';
import type { Command, VehicleStatus } from '../api/client';
import { isNewer } from './commands.svelte';
import { mergeStatus } from './merge';

const command = (state: string, completed: string | null, attempts = 1) =>
  ({ state, completed_at: completed, attempts }) as Command;

describe('isNewer', () => {
  it.each([
    ['accepted', null, 'sent', null, true],
    ['sent', null, 'accepted', null, false],
    ['received', null, 'sent', null, false],
    ['unknown', '2026-01-02T10:00:10.000Z', 'received', null, false],
    ['received', null, 'unknown', '2026-01-02T10:00:10.000Z', true],
    ['unknown', '2026-01-02T10:00:10.000Z', 'succeeded', '2026-01-02T10:00:12.000Z', true],
    ['succeeded', '2026-01-02T10:00:12.000Z', 'unknown', '2026-01-02T10:00:10.000Z', false],
  ])('%s (%s), then %s (%s): %s', (known, knownEnd, read, readEnd, want) => {
    expect(isNewer(command(read, readEnd), command(known, knownEnd))).toBe(want);
  });

  it('counts publications of an open command', () => {
    expect(isNewer(command('sent', null, 2), command('sent', null, 1))).toBe(true);
    expect(isNewer(command('sent', null, 1), command('sent', null, 2))).toBe(false);
  });

  it('takes what it does not know', () => {
    expect(isNewer(command('sent', null), undefined)).toBe(true);
  });
});

describe('mergeStatus', () => {
  const at = (minute: number) => `2026-01-02T09:0${minute}:00.000Z`;
  const status = {
    vehicle_id: 1,
    location: { latitude: 1, longitude: 2, address: 'Marienplatz', timestamp: at(0), heading: 5 },
    telemetry: { is_locked: true, speed_kmh: 3, gear: null, doors: { trunk: 'closed', front_left: 'closed' } },
    diagnostics: {},
    connectivity: { status: 'online', last_seen: at(0) },
    oem_data: { mode: 'eco', charging_status: 'waiting' },
  } as unknown as VehicleStatus;
  const ages = {
    sections: { location: at(0), telemetry: at(1), diagnostics: null, connectivity: null, oem_data: at(0) },
    older: { 'telemetry.speed_kmh': at(0) },
  };

  it('gives what has changed its age, and leaves the rest as old as it was', () => {
    const got = mergeStatus(status, ages, { vehicle_id: 1, at: at(5), telemetry: { speed_kmh: 40, doors: { trunk: 'open' } } });
    expect(got.status.telemetry).toEqual({ is_locked: true, speed_kmh: 40, gear: null, doors: { trunk: 'open', front_left: 'closed' } });
    expect(got.ages.sections.telemetry).toBe(at(5));
    expect(got.ages.older).toEqual({ 'telemetry.is_locked': at(1), 'telemetry.doors.front_left': at(1) });
    expect(got.status.location).toEqual(status.location);
    expect(got.status.connectivity.last_seen).toBe(at(5));
  });
  it('does not let a late report replace what is newer', () => {
    const got = mergeStatus(status, ages, {
      vehicle_id: 1,
      at: at(0),
      telemetry: { is_locked: false, speed_kmh: 7, gear: 'D' },
      oem_data: { mode: 'sport' },
    });
    expect(got.status.telemetry).toMatchObject({ is_locked: true, speed_kmh: 7, gear: 'D' });
    expect(got.ages).toEqual({ sections: ages.sections, older: { 'telemetry.speed_kmh': at(0), 'telemetry.gear': at(0) } });
    const again = mergeStatus(got.status, got.ages, { vehicle_id: 1, at: at(0), location: { latitude: 9, timestamp: at(0) } });
    expect(again.status.location.latitude).toBe(9);
    expect(
      mergeStatus(
        again.status,
        { ...ages, sections: { ...ages.sections, location: at(3) } },
        { vehicle_id: 1, at: at(1), location: { latitude: 5 } },
      ).status.location.latitude,
    ).toBe(9);
  });
  it('takes that a value is known no more', () => {
    const got = mergeStatus(status, ages, { vehicle_id: 1, at: at(5), telemetry: { speed_kmh: null } });
    expect(got.status.telemetry.speed_kmh).toBeNull();
    expect(got.ages.older['telemetry.speed_kmh']).toBeUndefined();
  });
  it('may take a report twice', () => {
    const change = { vehicle_id: 1, at: at(5), telemetry: { is_locked: false } };
    const once = mergeStatus(status, ages, change);
    expect(mergeStatus(once.status, once.ages, change)).toEqual(once);
  });
  it('forgets the address of a former position', () => {
    const got = mergeStatus(status, ages, { vehicle_id: 1, at: at(5), location: { latitude: 3, longitude: 4, timestamp: at(4) } });
    expect(got.status.location).toEqual({ latitude: 3, longitude: 4, address: null, timestamp: at(4), heading: 5 });
    expect(got.ages.older['location.heading']).toBe(at(0));
  });
  it('replaces the manufacturer’s data, and keeps raw values that did not change', () => {
    const got = mergeStatus(status, ages, { vehicle_id: 1, at: at(5), oem_data: { range: 'far' } });
    expect(got.status.oem_data).toEqual({ range: 'far', charging_status: 'waiting' });
    expect(mergeStatus(status, ages, { vehicle_id: 1, at: at(5), oem_data: { charging_status: null } }).status.oem_data).toEqual({});
  });
});
