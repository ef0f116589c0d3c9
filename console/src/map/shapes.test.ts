import { expect, it } from 'vitest';
import { boxOf, parseGeometry, ringOf, textOf } from './shapes';

const ring = [[11.5, 48.1], [11.6, 48.1], [11.6, 48.2], [11.5, 48.1]];
const polygon = { type: 'Polygon', coordinates: [ring] };

it('reads polygons, several, and features of them, and nothing else', () => {
  const several = { type: 'MultiPolygon', coordinates: [[ring]] };
  for (const geometry of [polygon, several]) {
    expect(parseGeometry(JSON.stringify(geometry))).toEqual(geometry);
    expect(parseGeometry(JSON.stringify({ type: 'Feature', properties: { a: 1 }, geometry }))).toEqual(geometry);
  }
  for (const text of ['', '{', 'null', '7', '[]', '{}', '{"type":"Point","coordinates":[1,2]}', '{"type":"Polygon"}', '{"type":"Feature"}'])
    expect(parseGeometry(text), text).toBeNull();
});

it('a polygon without holes can be drawn', () => {
  expect(ringOf(polygon)).toEqual(ring);
  expect(ringOf({ type: 'Polygon', coordinates: [ring.map((p) => [...p, 500])] })).toEqual(ring);
  for (const geometry of [
    null,
    { type: 'Polygon', coordinates: [] },
    { type: 'Polygon', coordinates: [ring, ring] },
    { type: 'Polygon', coordinates: [[[11, 48], [12, 48]]] },
    { type: 'Polygon', coordinates: [[[11], [12], [13], [11]]] },
    { type: 'Polygon', coordinates: [[['a', 'b'], null, [13, 4], [11, 48]]] },
    { type: 'MultiPolygon', coordinates: [[ring]] },
  ])
    expect(ringOf(geometry), JSON.stringify(geometry)).toBeNull();
});

it('is written a position a line, to a decimetre', () => {
  const text = textOf({ type: 'Polygon', coordinates: [[[11.123456789, 48], [-0.0000001, 1], [2, 3], [11.123456789, 48]]] });
  expect(text.split('\n')).toHaveLength(4);
  expect(parseGeometry(text)?.coordinates).toEqual([[[11.123457, 48], [0, 1], [2, 3], [11.123457, 48]]]);
});

it('has a box around all of its parts', () => {
  expect(boxOf({ type: 'MultiPolygon', coordinates: [[ring], [[[12, 47], [13, 47], [13, 48], [12, 47]]]] })).toEqual([11.5, 47, 13, 48.2]);
  expect(boxOf({ type: 'Polygon', coordinates: [] })).toBeNull();
});
