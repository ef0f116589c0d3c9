// The layers of a track: its line, gaps, ends, the vehicle, and the point that is chosen.
import type { GeoJSONSource, Map, MapMouseEvent } from 'maplibre-gl';
import { feature } from './features';
import type { Marker } from './markers';
import { drawPicture, pictureNames } from './pictures';
import { stretches, type Track, type TrackPoint } from './track';

type Data = Parameters<GeoJSONSource['setData']>[0];

const touchRadius = 30; // of the page's pixels around the pointer

const place = ({ longitude, latitude }: TrackPoint): [number, number] => [longitude, latitude];
const collection = (features: object[]) => ({ type: 'FeatureCollection', features }) as Data;
const line = (coordinates: [number, number][]) => ({ type: 'Feature', properties: {}, geometry: { type: 'LineString', coordinates } });
const dot = (point: TrackPoint, properties: object) => ({
  type: 'Feature',
  properties,
  geometry: { type: 'Point', coordinates: place(point) },
});

/** What the ends of a track are called; empty: the end is not marked. */
export interface Ends {
  start: string;
  end: string;
}

export class TrackLayers {
  #map: Map;
  #points: TrackPoint[] = [];

  constructor(map: Map, dark: boolean, font: string[]) {
    this.#map = map;
    const ratio = Math.max(2, Math.ceil(devicePixelRatio));
    for (const name of pictureNames) {
      const canvas = drawPicture(name, dark, ratio);
      const image = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height);
      if (image) map.addImage(name, image, { pixelRatio: ratio });
    }
    for (const name of ['track', 'gaps', 'ends', 'alone', 'chosen', 'car']) map.addSource(name, { type: 'geojson', data: collection([]) });
    const [ink, ground, accent, quiet] = dark ? ['#e4eaf0', '#14181c', '#6db5f2', '#9fb0bf'] : ['#17212b', '#ffffff', '#0b5fa5', '#55636f'];
    const words = {
      'text-font': font,
      'text-size': 13,
      'text-max-width': 20,
      'text-offset': [0, 0.9] as [number, number],
      'text-anchor': 'top',
      'text-allow-overlap': true,
      'text-ignore-placement': true,
    } as const;
    const ofWords = { 'text-color': ink, 'text-halo-color': ground, 'text-halo-width': 2 };
    map.addLayer({ id: 'gaps', type: 'line', source: 'gaps', paint: { 'line-color': quiet, 'line-width': 2, 'line-dasharray': [2, 3] } });
    map.addLayer({
      id: 'edge',
      type: 'line',
      source: 'track',
      layout: { 'line-join': 'round', 'line-cap': 'round' },
      paint: { 'line-color': ground, 'line-width': 7 },
    });
    map.addLayer({
      id: 'track',
      type: 'line',
      source: 'track',
      layout: { 'line-join': 'round', 'line-cap': 'round' },
      paint: { 'line-color': accent, 'line-width': 4 },
    });
    map.addLayer({
      id: 'alone',
      type: 'circle',
      source: 'alone',
      paint: { 'circle-radius': 4, 'circle-color': accent, 'circle-stroke-color': ground, 'circle-stroke-width': 1.5 },
    });
    map.addLayer({
      id: 'ends',
      type: 'circle',
      source: 'ends',
      paint: {
        'circle-radius': 6,
        'circle-color': ['case', ['get', 'isStart'], ground, accent],
        'circle-stroke-color': ['case', ['get', 'isStart'], accent, ground],
        'circle-stroke-width': 3,
      },
    });
    map.addLayer({ id: 'names', type: 'symbol', source: 'ends', layout: { 'text-field': ['get', 'name'], ...words }, paint: ofWords });
    map.addLayer({
      id: 'car',
      type: 'symbol',
      source: 'car',
      layout: {
        'icon-image': ['get', 'picture'],
        'icon-allow-overlap': true,
        'icon-ignore-placement': true,
        'text-field': ['get', 'name'],
        ...words,
        'text-anchor': 'bottom',
        'text-offset': [0, -0.9],
      },
      paint: { ...ofWords, 'icon-opacity': ['get', 'strength'] },
    } as never);
    map.addLayer({
      id: 'chosen',
      type: 'circle',
      source: 'chosen',
      paint: { 'circle-radius': 8, 'circle-color': accent, 'circle-opacity': 0.35, 'circle-stroke-color': ink, 'circle-stroke-width': 2.5 },
    });
  }

  #set(source: string, features: object[]) {
    void this.#map.getSource<GeoJSONSource>(source)?.setData(collection(features));
  }

  set(track: Track, ends: Ends) {
    this.#points = track.points;
    const parts = stretches(track);
    this.#set('track', parts.filter((part) => part.length > 1).map((part) => line(part.map(place))));
    this.#set('alone', parts.filter((part) => part.length === 1).map(([point]) => dot(point!, {})));
    this.#set('gaps', parts.slice(1).map((part, i) => line([place(parts[i]!.at(-1)!), place(part[0]!)])));
    const [first, last] = [track.points[0], track.points.at(-1)];
    this.#set(
      'ends',
      first && last
        ? [dot(first, { name: ends.start, isStart: true }), ...(ends.end ? [dot(last, { name: ends.end, isStart: false })] : [])]
        : [],
    );
  }

  car(marker: Marker | null, name: string, now: number) {
    const drawn = marker && feature(marker, now, name);
    this.#set('car', drawn ? [drawn] : []);
  }

  choose(point: TrackPoint | null) {
    this.#set('chosen', point ? [dot(point, {})] : []);
  }

  /** The point under the pointer; null: there is none. */
  at({ point: { x, y } }: MapMouseEvent): TrackPoint | null {
    let found: TrackPoint | null = null;
    let least = touchRadius;
    for (const point of this.#points) {
      const at = this.#map.project(place(point));
      const distance = Math.hypot(at.x - x, at.y - y);
      if (distance > least) continue;
      least = distance;
      found = point;
    }
    return found;
  }
}
