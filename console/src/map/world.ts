// The outlines of continents and countries (Natural Earth, 1:110,000,000), which lie below a map without streets.
import type { LayerSpecification, StyleSpecification } from 'maplibre-gl';
import { feature } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import atlas from 'world-atlas/countries-110m.json';
import { colourOf } from '../design/colours';

const topology = atlas as unknown as Topology<{ countries: GeometryCollection }>;

/** Lets a ring that crosses the antimeridian go on beyond it: around the earth, it would be filled across seas. */
function goOn(ring: number[][]) {
  for (const [i, point] of ring.entries()) if (i > 0) point[0]! -= 360 * Math.round((point[0]! - ring[i - 1]![0]!) / 360);
}

/** A style with these outlines as its ground. */
export function worldGround(dark: boolean): StyleSpecification {
  const edge = colourOf('edge', dark);
  const layers: LayerSpecification[] = [
    { id: 'ground', type: 'background', paint: { 'background-color': colourOf('water', dark) } },
    { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': colourOf('land', dark), 'fill-outline-color': edge } },
  ];
  const data = feature(topology, topology.objects.countries);
  for (const { geometry: g } of data.features)
    for (const polygon of g.type === 'Polygon' ? [g.coordinates] : g.type === 'MultiPolygon' ? g.coordinates : []) polygon.forEach(goOn);
  // Coarse shapes need no fine tiles: closer, the ones of this zoom are enlarged.
  return { version: 8, sources: { land: { type: 'geojson', data, maxzoom: 6 } }, layers };
}
