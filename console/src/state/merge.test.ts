import { describe, expect, it } from 'vitest';
import type { Command, VehicleSummary } from '../api/client';
import { isNewer, merge } from './merge';

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

describe('merge', () => {
  const vehicle = {
    id: 1,
    location: { latitude: 1, longitude: 2, address: 'Marienplatz', timestamp: '2026-01-02T09:00:00.000Z', heading: 5 },
    telemetry: { is_locked: true, speed_kmh: 3 },
    diagnostics: {},
    connectivity: { status: 'online', last_seen: null },
  } as unknown as VehicleSummary;

  it('keeps what a report does not have, and takes null for what is known no more', () => {
    const after = merge(vehicle, { vehicle_id: 1, at: 'x', telemetry: { is_locked: null } });
    expect(after.telemetry).toEqual({ is_locked: null, speed_kmh: 3 });
    expect(after.location).toEqual(vehicle.location);
  });

  it('forgets the address of a former position, and dates the new one', () => {
    const after = merge(vehicle, { vehicle_id: 1, at: '2026-01-02T10:00:00.000Z', location: { latitude: 4 } });
    expect(after.location).toMatchObject({ latitude: 4, longitude: 2, address: null, timestamp: '2026-01-02T10:00:00.000Z' });
  });
});
