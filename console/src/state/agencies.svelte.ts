import { getPages } from '../api/client';
import type { components } from '../api/contract';

export type Agency = components['schemas']['Agency'];

/** Reads all agencies that one may see, by their ids: those of the vehicles that are held here may be few of them. */
export async function readAgencies(): Promise<Agency[]> {
  return (await getPages<Agency>('agencies', Infinity)).items.sort((a, b) => a.id - b.id);
}
