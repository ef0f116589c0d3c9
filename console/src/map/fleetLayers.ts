// The layers of a fleet: clusters with their counts, vehicles, and what is selected above both.
import type { GeoJSONSource, Map as Ground, MapMouseEvent } from 'maplibre-gl';
import { feature, Drawn, type Difference, type Feature } from './features';
import { drawPicture, pictureNames } from './pictures';
import type { VehicleRow } from '../state/vehicleRow';

const collection = (features: Feature[]) => ({ type: 'FeatureCollection' as const, features });
const touchRadius = 8; // of the page's pixels around the pointer
const largeChange = 0.5; // of what is drawn: beyond that it is sent as a whole

export class FleetLayers {
  #map: Ground;
  #drawn = new Drawn();
  #rows = new Map<number, VehicleRow>(); // that were drawn last
  #vehicles: GeoJSONSource;
  #selected: GeoJSONSource;

  constructor(map: Ground, dark: boolean, font: string[]) {
    this.#map = map;
    const ratio = Math.max(2, Math.ceil(devicePixelRatio));
    for (const name of pictureNames) {
      const canvas = drawPicture(name, dark, ratio);
      const image = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height);
      if (image) map.addImage(name, image, { pixelRatio: ratio });
    }
    const empty = collection([]);
    map.addSource('vehicles', { type: 'geojson', data: empty, cluster: true, clusterRadius: 44, clusterMaxZoom: 14, clusterMinPoints: 4 });
    map.addSource('selected', { type: 'geojson', data: empty });
    this.#vehicles = map.getSource<GeoJSONSource>('vehicles')!;
    this.#selected = map.getSource<GeoJSONSource>('selected')!;
    const [ink, ground, accent] = dark ? ['#e4eaf0', '#37424c', '#6db5f2'] : ['#17212b', '#ffffff', '#0b5fa5'];
    const symbol = {
      layout: {
        'icon-image': ['get', 'picture'],
        'icon-allow-overlap': true,
        'icon-ignore-placement': true,
        'text-field': ['step', ['zoom'], '', 13, ['get', 'name']],
        'text-font': font,
        'text-size': 12,
        'text-anchor': 'top',
        'text-offset': [0, 1],
        'text-optional': true,
      },
      paint: {
        'text-color': ink,
        'text-halo-color': dark ? '#14181c' : '#ffffff',
        'text-halo-width': 1.5,
        'icon-opacity': ['get', 'strength'],
      },
    } as const;
    map.addLayer({
      id: 'clusters', type: 'circle', source: 'vehicles', filter: ['has', 'point_count'],
      paint: {
        'circle-radius': ['step', ['get', 'point_count'], 15, 50, 19, 500, 24, 5000, 30],
        'circle-color': ground, 'circle-stroke-color': ink, 'circle-stroke-width': 2,
      },
    });
    map.addLayer({
      id: 'counts', type: 'symbol', source: 'vehicles', filter: ['has', 'point_count'],
      layout: { 'text-field': ['get', 'point_count_abbreviated'], 'text-font': font, 'text-size': 13, 'text-allow-overlap': true },
      paint: { 'text-color': ink },
    });
    map.addLayer({ id: 'vehicles', type: 'symbol', source: 'vehicles', filter: ['!', ['has', 'point_count']], ...symbol } as never);
    map.addLayer({
      id: 'rings',
      type: 'circle',
      source: 'selected',
      paint: {
        'circle-radius': 17,
        'circle-color': accent,
        'circle-opacity': 0.25,
        'circle-stroke-color': accent,
        'circle-stroke-width': 3,
      },
    });
    map.addLayer({ id: 'selected', type: 'symbol', source: 'selected', ...symbol } as never);
  }

  /** How many vehicles are drawn, in clusters or alone. */
  get size() {
    return this.#drawn.size;
  }

  /**
   * Draws these vehicles and no others, each to a pixel. all: also those whose rows have not changed, since
   * positions have become old, or the map is another one.
   */
  set(rows: VehicleRow[], now: number, all: boolean) {
    const difference: Difference = { add: [], remove: [], update: [] };
    const before = this.#rows;
    const pixel = 360 / 512 / 2 ** this.#map.getZoom(); // in degrees of longitude
    this.#rows = new Map(rows.map((row) => [row.id, row]));
    for (const row of rows)
      if (all || before.get(row.id) !== row) this.#drawn.set(row.id, feature(row, now, row.plate), difference, pixel);
    for (const id of before.keys()) if (!this.#rows.has(id)) this.#drawn.set(id, null, difference);
    const changes = difference.add.length + difference.remove.length + difference.update.length;
    if (changes === 0) return;
    if (changes > largeChange * this.#drawn.size) void this.#vehicles.setData(collection(this.#drawn.all()));
    else void this.#vehicles.updateData(difference);
  }

  select(ids: Iterable<number>) {
    const features = [...ids].map((id) => this.#drawn.get(id)).filter((f) => f !== undefined);
    void this.#selected.setData(collection(features));
  }

  /** Moves the map to a vehicle, so close that it stands alone, unless it is seen alone already. */
  show(id: number) {
    const { longitude = null, latitude = null } = this.#rows.get(id) ?? {};
    if (longitude === null || latitude === null) return;
    this.#map.easeTo({ center: [longitude, latitude], zoom: Math.max(this.#map.getZoom(), 14) });
  }

  /** What is at a place of the map: a vehicle; null: none. At a cluster the map moves to what is in it. */
  async at({ point: { x, y } }: MapMouseEvent): Promise<number | null> {
    const box: [[number, number], [number, number]] = [[x - touchRadius, y - touchRadius], [x + touchRadius, y + touchRadius]];
    const found = this.#map.queryRenderedFeatures(box, { layers: ['selected', 'vehicles', 'clusters'] });
    const distance = (f: (typeof found)[number]) => {
      const at = this.#map.project((f.geometry as Feature['geometry']).coordinates);
      return Math.hypot(at.x - x, at.y - y);
    };
    const nearest = found.sort((a, b) => distance(a) - distance(b))[0];
    if (!nearest) return null;
    if (nearest.layer.id !== 'clusters') return Number(nearest.id);
    const zoom = await this.#vehicles.getClusterExpansionZoom(Number(nearest.properties.cluster_id));
    this.#map.easeTo({ center: (nearest.geometry as Feature['geometry']).coordinates, zoom });
    return null;
  }
}
