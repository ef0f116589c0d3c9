// The stations of the agencies that one may see, read while a map is shown.
import { ApiError, getPages } from '../api/client';
import type { components } from '../api/contract';
import { around, type Box } from '../map/markers';

export type Station = components['schemas']['Station'];

const pagesRead = 50; // of 100 stations

class Stations {
  all = $state.raw<Station[]>([]);
  /** Around all of them; null: there are none. */
  box = $derived.by<Box | null>(() => around(this.all));
  /** Whether there are stations that were not read. */
  more = $state(false);
  problem = $state('');

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
