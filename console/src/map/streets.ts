// Streets, water and names, in the layers of the Protomaps basemap (version 4), so quiet that vehicles stand out.
import type { ExpressionSpecification, FilterSpecification, LayerSpecification, StyleSpecification } from 'maplibre-gl';
import type { Archive } from './archive';
import { boldFont as bold, font as regular } from './ground';

/** The name of the source of streets. */
export const streetSource = 'streets';

const colours = {
  light: {
    ground: '#eef1f4', earth: '#f5f7f8', green: '#dfecd9', built: '#eceff1', water: '#bfd8ea', building: '#e2e6ea', rail: '#bcc6cf',
    path: '#c5ced6', road: '#ffffff', edge: '#ccd4db', far: '#d7dde3', major: '#ffffff', majorEdge: '#b7c2cc', majorFar: '#b7c2cc', highway: '#fdebc4', highwayEdge: '#d9b878', border: '#93a1ad',
    name: '#4b5965', place: '#17212b', waterName: '#245a80', halo: '#f8f9fa',
  },
  dark: {
    ground: '#1d2329', earth: '#222930', green: '#22352b', built: '#28313a', water: '#132b3e', building: '#2c353f', rail: '#4a5762',
    path: '#45525d', road: '#3b4752', edge: '#1a2025', far: '#343f49', major: '#4c5965', majorEdge: '#1a2025', majorFar: '#4c5965', highway: '#75664a', highwayEdge: '#8a7650', border: '#6c7a87',
    name: '#b0becb', place: '#e4eaf0', waterName: '#8ab7da', halo: '#191f24',
  },
};

const green = [
  'park', 'national_park', 'nature_reserve', 'protected_area', 'forest', 'wood', 'scrub', 'grass', 'grassland', 'meadow', 'garden', 'golf_course', 'cemetery',
  'allotments', 'village_green', 'recreation_ground', 'playground', 'pitch', 'orchard', 'zoo', 'dog_park',
];
const built = ['industrial', 'commercial', 'railway', 'hospital', 'school', 'university', 'college', 'military', 'aerodrome', 'pedestrian', 'stadium', 'platform'];

const kind = (...kinds: string[]): FilterSpecification => ['in', ['get', 'kind'], ['literal', kinds]];
const areas: FilterSpecification = ['==', ['geometry-type'], 'Polygon'];
const lines: FilterSpecification = ['==', ['geometry-type'], 'LineString'];
const points: FilterSpecification = ['==', ['geometry-type'], 'Point'];

/** A size that grows with the zoom level: pairs of both. */
const growing = (...stops: number[]): ExpressionSpecification => ['interpolate', ['exponential', 1.6], ['zoom'], ...stops];

interface Road {
  id: string;
  filter: FilterSpecification;
  /** The zoom levels from which it is drawn, in the colour far, and from which with edges. */
  from: number;
  edged: number;
  width: number[];
  colour: string;
  edge: string;
  far: string;
}

/** A plain ground, and on it the streets of a file, if there is one, with names in a language. */
export function ground(dark: boolean, archive: Archive | null, language: string): StyleSpecification {
  const c = colours[dark ? 'dark' : 'light'];
  return {
    version: 8,
    sources: archive ? { [streetSource]: { type: 'vector', url: archive.url, attribution: archive.attribution } } : {},
    layers: [{ id: 'ground', type: 'background', paint: { 'background-color': c.ground } }, ...(archive ? layers(c, language) : [])],
  };
}

function layers(c: typeof colours.light, language: string): LayerSpecification[] {
  const name: ExpressionSpecification = ['get', 'name'];
  const translated: ExpressionSpecification = ['coalesce', ['get', `name:${language}`], name];
  const of = (layer: string) => ({ source: streetSource, 'source-layer': layer });
  const text = (colour: string) => ({ 'text-color': colour, 'text-halo-color': c.halo, 'text-halo-width': 1.4 });
  const along = { 'symbol-placement': 'line', 'text-font': regular, 'text-padding': 4 } as const;

  const roads: Road[] = [
    { id: 'minor', filter: kind('minor_road', 'other'), from: 11, edged: 13, width: [11, 0.4, 13, 1.3, 15, 5, 17, 14, 19, 34], colour: c.road, edge: c.edge, far: c.far },
    { id: 'major', filter: kind('major_road', 'medium_road'), from: 7, edged: 11, width: [7, 0.5, 11, 1.6, 13, 3.5, 15, 8, 17, 19, 19, 42], colour: c.major, edge: c.majorEdge, far: c.majorFar },
    { id: 'highway', filter: kind('highway'), from: 4, edged: 10, width: [4, 0.6, 8, 1.6, 11, 2.6, 13, 4.5, 15, 9, 17, 20, 19, 44], colour: c.highway, edge: c.highwayEdge, far: c.highwayEdge },
  ];
  const tunnels: ExpressionSpecification = ['case', ['to-boolean', ['get', 'is_tunnel']], 0.45, 1];
  const caps = { 'line-cap': 'round', 'line-join': 'round' } as const;

  return [
    { id: 'earth', type: 'fill', ...of('earth'), filter: areas, paint: { 'fill-color': c.earth } },
    { id: 'built', type: 'fill', ...of('landuse'), minzoom: 10, filter: kind(...built), paint: { 'fill-color': c.built } },
    { id: 'green', type: 'fill', ...of('landuse'), filter: kind(...green), paint: { 'fill-color': c.green } },
    { id: 'water', type: 'fill', ...of('water'), filter: areas, paint: { 'fill-color': c.water } },
    { id: 'rivers', type: 'line', ...of('water'), filter: lines, minzoom: 8, layout: caps, paint: { 'line-color': c.water, 'line-width': growing(8, 0.5, 14, 2, 18, 10) } },
    { id: 'runways', type: 'line', ...of('roads'), filter: kind('aeroway'), minzoom: 10, paint: { 'line-color': c.edge, 'line-width': growing(10, 0.5, 14, 8, 18, 60) } },
    { id: 'buildings', type: 'fill', ...of('buildings'), filter: areas, minzoom: 13.5, paint: { 'fill-color': c.building, 'fill-opacity': ['interpolate', ['linear'], ['zoom'], 13.5, 0, 14.5, 1] } },
    { id: 'ferries', type: 'line', ...of('roads'), filter: kind('ferry'), minzoom: 9, paint: { 'line-color': c.waterName, 'line-opacity': 0.5, 'line-dasharray': [4, 3] } },
    { id: 'rails', type: 'line', ...of('roads'), filter: kind('rail'), minzoom: 9, paint: { 'line-color': c.rail, 'line-opacity': tunnels, 'line-width': growing(9, 0.4, 14, 1.2, 18, 3) } },
    { id: 'paths', type: 'line', ...of('roads'), filter: kind('path'), minzoom: 14, paint: { 'line-color': c.path, 'line-dasharray': [3, 2], 'line-width': growing(14, 0.6, 18, 2.5) } },
    ...roads.map(({ id, filter, edged, width, edge }): LayerSpecification => ({
      id: `${id}-edges`, type: 'line', ...of('roads'), filter, minzoom: edged, layout: caps,
      paint: { 'line-color': edge, 'line-opacity': tunnels, 'line-width': growing(...width.map((n, i) => (i % 2 ? n + 1.8 : n))) },
    })),
    ...roads.map(({ id, filter, from, edged, width, colour, far }): LayerSpecification => ({
      id, type: 'line', ...of('roads'), filter, minzoom: from, layout: caps,
      paint: { 'line-color': ['step', ['zoom'], far, edged, colour], 'line-opacity': tunnels, 'line-width': growing(...width) },
    })),
    {
      id: 'borders', type: 'line', ...of('boundaries'), filter: kind('country', 'region'),
      paint: { 'line-color': c.border, 'line-dasharray': [4, 2], 'line-width': ['match', ['get', 'kind'], 'country', 1.2, 0.6] },
    },
    {
      id: 'house-numbers', type: 'symbol', ...of('buildings'), filter: kind('address'), minzoom: 17,
      layout: { 'text-field': ['get', 'addr_housenumber'], 'text-font': regular, 'text-size': 11 }, paint: text(c.name),
    },
    {
      id: 'river-names', type: 'symbol', ...of('water'), filter: lines, minzoom: 12,
      layout: { ...along, 'text-field': translated, 'text-size': 12, 'text-letter-spacing': 0.1 }, paint: { ...text(c.waterName), 'text-halo-color': c.water },
    },
    {
      id: 'minor-names', type: 'symbol', ...of('roads'), filter: kind('minor_road', 'path', 'other'), minzoom: 14.5,
      layout: { ...along, 'text-field': name, 'text-size': ['interpolate', ['linear'], ['zoom'], 14.5, 11, 18, 14] }, paint: text(c.name),
    },
    {
      id: 'major-names', type: 'symbol', ...of('roads'), filter: kind('major_road', 'medium_road', 'highway'), minzoom: 12.5,
      layout: { ...along, 'text-field': name, 'text-size': ['interpolate', ['linear'], ['zoom'], 12, 11, 18, 15] }, paint: text(c.name),
    },
    {
      id: 'highway-numbers', type: 'symbol', ...of('roads'), filter: kind('highway'), minzoom: 8,
      layout: {
        'symbol-placement': 'line', 'symbol-spacing': 400, 'text-rotation-alignment': 'viewport', 'text-font': bold, 'text-size': 11,
        'text-field': ['coalesce', ['get', 'ref'], ['get', 'shield_text'], ''],
      },
      paint: text(c.name),
    },
    {
      id: 'water-names', type: 'symbol', ...of('water'), filter: points, layout: { 'text-field': translated, 'text-font': regular, 'text-size': 12, 'text-max-width': 8 },
      paint: { ...text(c.waterName), 'text-halo-color': c.water },
    },
    {
      id: 'quarters', type: 'symbol', ...of('places'), filter: kind('macrohood', 'neighbourhood'), minzoom: 11, maxzoom: 16,
      layout: {
        'text-field': translated, 'text-font': regular, 'text-size': 12, 'text-max-width': 7, 'text-letter-spacing': 0.08, 'text-transform': 'uppercase', 'text-padding': 8,
        'symbol-sort-key': ['coalesce', ['get', 'min_zoom'], 20],
      },
      paint: text(c.name),
    },
    {
      id: 'localities', type: 'symbol', ...of('places'), filter: kind('locality'), maxzoom: 15,
      layout: {
        'text-field': translated, 'text-font': bold, 'text-max-width': 7, 'text-padding': 6,
        'text-size': ['interpolate', ['linear'], ['zoom'], 3, 10, 8, importance(11, 15), 13, importance(13, 22)],
        'symbol-sort-key': ['coalesce', ['get', 'min_zoom'], 20],
      },
      paint: text(c.place),
    },
    {
      id: 'regions', type: 'symbol', ...of('places'), filter: kind('region'), minzoom: 5, maxzoom: 8,
      layout: { 'text-field': translated, 'text-font': regular, 'text-size': 12, 'text-letter-spacing': 0.1, 'text-transform': 'uppercase' }, paint: text(c.name),
    },
    {
      id: 'countries', type: 'symbol', ...of('places'), filter: kind('country'), maxzoom: 7,
      layout: { 'text-field': translated, 'text-font': bold, 'text-size': ['interpolate', ['linear'], ['zoom'], 2, 10, 6, 16], 'text-max-width': 6 }, paint: text(c.place),
    },
  ];
}

/** Between two sizes, by how many people live there: population_rank goes from 0 to about 15. */
function importance(small: number, large: number): ExpressionSpecification {
  return ['interpolate', ['linear'], ['coalesce', ['get', 'population_rank'], 6], 6, small, 13, large];
}
