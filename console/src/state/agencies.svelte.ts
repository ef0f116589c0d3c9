import { getPages } from '../api/client';
import type { components } from '../api/contract';
import type { Texts } from '../texts/en';
import { unique } from '../unique';

export type Agency = components['schemas']['Agency'];

class Agencies {
  /** As they were last read, by their ids. */
  all = $state.raw<Agency[]>([]);

  /** Reads all agencies that one may see: those of the vehicles that are held here may be few of them. */
  async read(): Promise<Agency[]> {
    const { items } = await getPages<Agency>('agencies', Infinity);
    this.all = unique(items, (a) => a.id).sort((a, b) => a.id - b.id);
    return this.all;
  }

  /** What people call an agency: its number, and its name if that was read. */
  text(id: number, texts: Texts): string {
    const name = this.all.find((a) => a.id === id)?.name;
    return name ? `${texts.haltAgency(id)}: ${name}` : texts.haltAgency(id);
  }
}

export const agencies = new Agencies();
