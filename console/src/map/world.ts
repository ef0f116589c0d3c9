// The outlines of continents and countries (Natural Earth, 1:110,000,000), which lie below a map without streets.
import type { LayerSpecification, SourceSpecification, StyleSpecification } from 'maplibre-gl';
import { feature, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import atlas from 'world-atlas/countries-110m.json';
import { colourOf } from '../design/colours';

const topology = atlas as unknown as Topology<{ countries: GeometryCollection; land: GeometryCollection }>;

// Coarse shapes need no fine tiles: closer, the ones of this zoom are enlarged.
const source = (data: ReturnType<typeof feature> | ReturnType<typeof mesh>): SourceSpecification => ({ type: 'geojson', data, maxzoom: 6 });

/** A style with these outlines as its ground. */
export function worldGround(dark: boolean): StyleSpecification {
  const edge = colourOf('edge', dark);
  const layers: LayerSpecification[] = [
    { id: 'ground', type: 'background', paint: { 'background-color': colourOf('water', dark) } },
    { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': colourOf('land', dark), 'fill-outline-color': edge } },
    { id: 'borders', type: 'line', source: 'borders', paint: { 'line-color': edge, 'line-width': 0.75 } },
  ];
  const { countries, land } = topology.objects;
  return {
    version: 8,
    sources: { land: source(feature(topology, land)), borders: source(mesh(topology, countries, (a, b) => a !== b)) },
    layers,
  };
}
