// @vitest-environment happy-dom
import type { FeatureCollection, MultiPolygon, Polygon } from 'geojson';
import { expect, it } from 'vitest';
import { worldGround } from './world';

it('no outline leads around the earth where it crosses the antimeridian: it would be filled across seas', () => {
  const { land } = worldGround(false).sources as unknown as { land: { data: FeatureCollection<Polygon | MultiPolygon> } };
  const { features } = 'features' in land.data ? land.data : { features: [land.data as never] };
  const polygons = features.flatMap(({ geometry: g }) => (g.type === 'Polygon' ? [g.coordinates] : g.coordinates));
  expect(polygons.length).toBeGreaterThan(100);
  // The last edge closes a ring: that of Antarctica has none at the pole.
  const steps = polygons.flat().flatMap((ring) => ring.slice(1, -1).map(([x], i) => Math.abs(x! - ring[i]![0]!)));
  expect(Math.max(...steps)).toBeLessThan(180);
});
