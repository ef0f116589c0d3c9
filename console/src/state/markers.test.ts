import { expect, it, vi } from 'vitest';
import { Markers } from './markers.svelte';

it('keep events that come while they are read', async () => {
  const rows = {
    columns: ['id', 'agency_id', 'status', 'connectivity', 'energy_percent'],
    statuses: ['available'],
    connectivities: ['online'],
    vehicles: [[4, 1, 0, 0, 80]],
  };
  const answers: (() => void)[] = [];
  vi.stubGlobal(
    'fetch',
    () =>
      new Promise((resolve) =>
        answers.push(() => resolve({ ok: true, status: 200, headers: new Headers({ ETag: 'a' }), json: async () => ({ data: rows }) })),
      ),
  );
  const markers = new Markers();
  const leave = markers.follow();
  markers.contact(4, 'offline');
  markers.report({
    vehicle_id: 4,
    at: '2026-01-02T10:00:00.000Z',
    telemetry: { battery_level_percent: 5 },
    location: { latitude: 48, longitude: 11 },
  });
  answers[0]?.();
  await vi.waitFor(() => expect(markers.all.get(4)).toMatchObject({ contact: 'offline', energy: 5, latitude: 48 }));
  leave();
  vi.unstubAllGlobals();
});
