// The layers of areas, below stations and vehicles: a quiet ground, a border by the kind, and the name.
import type { GeoJSONSource, Map } from 'maplibre-gl';
import type { Area, AreaKind } from '../state/areas.svelte';

/** Of the border of an area: its colour in light and dark, and how it is dashed, for those who see no colours. */
export const areaSigns: Record<AreaKind, { colour: [light: string, dark: string]; dashes: number[] }> = {
  operating: { colour: ['#11703a', '#5fd18e'], dashes: [1, 0] },
  no_parking: { colour: ['#b3261e', '#ff8a80'], dashes: [3, 2] },
  end_only: { colour: ['#6b3fa0', '#c3a1f0'], dashes: [1, 1.5] },
};

export class AreaLayer {
  #source: GeoJSONSource;

  constructor(map: Map, dark: boolean, font: string[]) {
    map.addSource('areas', { type: 'geojson', data: { type: 'FeatureCollection', features: [] } });
    this.#source = map.getSource<GeoJSONSource>('areas')!;
    for (const [kind, { colour, dashes }] of Object.entries(areaSigns)) {
      const is = ['==', ['get', 'kind'], kind] as never;
      const paint = colour[dark ? 1 : 0]!;
      map.addLayer({
        id: `area-${kind}`, type: 'fill', source: 'areas', filter: is,
        paint: { 'fill-color': paint, 'fill-opacity': kind === 'operating' ? 0.06 : 0.18 },
      });
      map.addLayer({
        id: `area-border-${kind}`, type: 'line', source: 'areas', filter: is,
        paint: { 'line-color': paint, 'line-width': 2, 'line-dasharray': dashes },
      });
    }
    map.addLayer({
      id: 'area-names', type: 'symbol', source: 'areas', minzoom: 10,
      layout: { 'text-field': ['get', 'name'], 'text-font': font, 'text-size': 12, 'text-optional': true },
      paint: { 'text-color': dark ? '#9fb0bf' : '#55636f', 'text-halo-color': dark ? '#14181c' : '#ffffff', 'text-halo-width': 1.5 },
    });
  }

  set(areas: Area[]) {
    void this.#source.setData({
      type: 'FeatureCollection',
      features: areas.map(({ name, kind, geometry }) => ({ type: 'Feature', geometry: geometry as never, properties: { name, kind } })),
    });
  }
}
