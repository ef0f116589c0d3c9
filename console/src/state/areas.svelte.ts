// The areas of an agency, read while a map is shown.
import { ApiError, call, getIfChanged } from '../api/client';
import type { components } from '../api/contract';

export type Area = components['schemas']['Area'];
export type AreaKind = Area['kind'];
export type Geometry = components['schemas']['AreaGeometry'];

export const areaKinds: AreaKind[] = ['operating', 'no_parking', 'end_only'];

const pathOf = (agency: number, name: string) => `agencies/${agency}/areas/${encodeURIComponent(name)}`;

class Areas {
  /** Whose areas are held; null: none are. */
  agency = $state<number | null>(null);
  all = $state.raw<Area[]>([]);
  problem = $state('');
  #etag = '';

  /** Reads the areas of an agency; null: there is none to be shown. */
  async read(agency: number | null) {
    if (agency !== this.agency) [this.agency, this.all, this.problem, this.#etag] = [agency, [], '', ''];
    if (agency === null) return;
    try {
      const changed = await getIfChanged<Area[]>(`agencies/${agency}/areas`, this.#etag);
      if (agency !== this.agency) return; // another one was chosen meanwhile
      if (changed) ({ data: this.all, etag: this.#etag } = changed);
      this.problem = '';
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      this.problem = error instanceof Error ? error.message : String(error);
    }
  }
}

export const areas = new Areas();

/** Reads one area, and the entity tag by which a change is refused if another person has changed it. */
export const readArea = (agency: number, name: string) => getIfChanged<Area>(pathOf(agency, name), '');

const headers = (etag: string): Record<string, string> => (etag ? { 'If-Match': etag } : {});

/** Adds or changes an area; the answer comes when it is in force everywhere. */
export const putArea = (agency: number, name: string, body: { kind: AreaKind; geometry: Geometry }, etag: string) =>
  call<Area, { warnings: string[] }>('PUT', `api/v1/admin/${pathOf(agency, name)}`, { body, headers: headers(etag) });

export const removeArea = (agency: number, name: string, etag: string) =>
  call<null>('DELETE', `api/v1/admin/${pathOf(agency, name)}`, { headers: headers(etag) });
