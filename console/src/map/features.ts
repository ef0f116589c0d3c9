// Markers as features of the map library, and the changes between what it has and what it should have.
import { picture, strength, type Marker } from './markers';

export interface Feature {
  type: 'Feature';
  id: number;
  geometry: { type: 'Point'; coordinates: [number, number] };
  properties: { picture: string; strength: number; name: string };
}

/** A change of a source of features, as the map library takes it. */
export interface Difference {
  add: Feature[];
  remove: number[];
  update: { id: number; newGeometry: Feature['geometry']; addOrUpdateProperties: { key: string; value: string | number }[] }[];
}

/** Without a name nothing is written. */
export function feature(marker: Marker, now: number, name = ''): Feature | null {
  if (marker.latitude === null || marker.longitude === null) return null;
  return {
    type: 'Feature',
    id: marker.id,
    geometry: { type: 'Point', coordinates: [marker.longitude, marker.latitude] },
    properties: { picture: picture(marker), strength: strength(marker.locatedAt, now), name },
  };
}

/** What the map library has. */
export class Drawn {
  #features = new Map<number, Feature>();

  get size() {
    return this.#features.size;
  }

  all(): Feature[] {
    return [...this.#features.values()];
  }

  get(id: number) {
    return this.#features.get(id);
  }

  clear() {
    this.#features.clear();
  }

  /**
   * Notes what a vehicle should look like, null: it is not shown, and adds what that changes. One that has moved by
   * visible degrees or fewer stays where it is drawn.
   */
  set(id: number, wanted: Feature | null, difference: Difference, visible = 0) {
    const has = this.#features.get(id);
    if (wanted === null) {
      if (!has) return;
      this.#features.delete(id);
      difference.remove.push(id);
      return;
    }
    if (has && same(has, wanted, visible)) return;
    this.#features.set(id, wanted);
    if (!has) difference.add.push(wanted);
    else
      difference.update.push({
        id,
        newGeometry: wanted.geometry,
        addOrUpdateProperties: Object.entries(wanted.properties).map(([key, value]) => ({ key, value })),
      });
  }
}

function same(a: Feature, b: Feature, visible: number): boolean {
  const [from, to] = [a.geometry.coordinates, b.geometry.coordinates];
  return (
    Math.abs(from[0] - to[0]) <= visible &&
    Math.abs(from[1] - to[1]) <= visible &&
    a.properties.picture === b.properties.picture &&
    a.properties.strength === b.properties.strength &&
    a.properties.name === b.properties.name
  );
}
