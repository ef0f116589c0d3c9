// The layer of stations, below the vehicles: a quiet sign for each, and its name where people look closer.
import type { GeoJSONSource, Map, MapMouseEvent } from 'maplibre-gl';
import type { Station } from '../state/stations.svelte';
import { drawStation } from './pictures';

export class StationLayer {
  #map: Map;
  #source: GeoJSONSource;
  #stations: Station[] = [];

  constructor(map: Map, dark: boolean, font: string[]) {
    this.#map = map;
    const ratio = Math.max(2, Math.ceil(devicePixelRatio));
    const canvas = drawStation(dark, ratio);
    const image = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height);
    if (image) map.addImage('station', image, { pixelRatio: ratio });
    map.addSource('stations', { type: 'geojson', data: { type: 'FeatureCollection', features: [] } });
    this.#source = map.getSource<GeoJSONSource>('stations')!;
    map.addLayer({
      id: 'stations', type: 'symbol', source: 'stations', minzoom: 8,
      layout: {
        'icon-image': 'station',
        'icon-padding': 1,
        'text-field': ['step', ['zoom'], '', 10, ['get', 'name']],
        'text-font': font,
        'text-size': 12,
        'text-anchor': 'left',
        'text-offset': [0.9, 0],
        'text-max-width': 12,
        'text-justify': 'left',
        'text-optional': true,
      },
      paint: { 'text-color': dark ? '#9fb0bf' : '#55636f', 'text-halo-color': dark ? '#14181c' : '#ffffff', 'text-halo-width': 1.5 },
    });
  }

  set(stations: Station[]) {
    this.#stations = stations;
    void this.#source.setData({
      type: 'FeatureCollection',
      features: stations.map(({ name, longitude, latitude }, at) => ({
        type: 'Feature',
        geometry: { type: 'Point', coordinates: [longitude, latitude] },
        properties: { name, at },
      })),
    });
  }

  /** The station at a place of the map; null: there is none. */
  at({ point }: MapMouseEvent): Station | null {
    const [found] = this.#map.queryRenderedFeatures(point, { layers: ['stations'] });
    return this.#stations[Number(found?.properties.at)] ?? null;
  }
}
