// The stations of the agencies that one may see, read while a map is shown.
import { ApiError, getPages } from '../api/client';
import type { components } from '../api/contract';
import { around, type Box } from '../map/markers';

export type Station = components['schemas']['Station'];
type Place = Pick<Station, 'latitude' | 'longitude'>;

const pagesRead = 50; // of 100 stations

/** The station that is nearest to a place, and how far it is; null: there are none. */
export function nearestOf(stations: Station[], { latitude, longitude }: Place): { station: Station; km: number } | null {
  const kmPerDegree = 111.2;
  const found = stations.map((station) => {
    const east = (station.longitude - longitude) * Math.cos((latitude * Math.PI) / 180);
    return { station, km: kmPerDegree * Math.hypot(station.latitude - latitude, east) };
  });
  return found.sort((a, b) => a.km - b.km)[0] ?? null;
}

class Stations {
  all = $state.raw<Station[]>([]);
  /** Around all of them; null: there are none. */
  box = $derived.by<Box | null>(() => around(this.all));
  /** Whether there are stations that were not read. */
  more = $state(false);
  problem = $state('');

  /** As nearestOf, of an agency. */
  nearest(agency: number, place: Place): { station: Station; km: number } | null {
    return nearestOf(this.all.filter((s) => s.agency_id === agency), place);
  }

  async read() {
    try {
      ({ items: this.all, more: this.more } = await getPages<Station>('stations', pagesRead));
      this.problem = '';
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }
}

export const stations = new Stations();
