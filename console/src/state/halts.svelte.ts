// The halts that are in force.
import { get, type Halt } from '../api/client';
import { unique } from '../unique';

class Halts {
  all = $state<Halt[]>([]);
  #readings = 0;

  async read() {
    const reading = ++this.#readings;
    const { data } = await get<Halt[]>('halts');
    if (reading === this.#readings) this.all = unique(data, (h) => h.agency_id); // else a newer answer is there, or comes
  }

  /** The halt that stops commands to the vehicles of an agency; null: there is none. */
  of(agency: number): Halt | null {
    return this.all.find((h) => h.agency_id === null || h.agency_id === agency) ?? null;
  }
}

export const halts = new Halts();
