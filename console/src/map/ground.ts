// What lies under the vehicles.
import type { StyleSpecification } from 'maplibre-gl';

/** Fonts of the machine: without an address of glyphs the library draws letters with these. */
export const font = ['system-ui, sans-serif'];

/** A ground without streets. */
export function plainGround(dark: boolean): StyleSpecification {
  return {
    version: 8,
    sources: {},
    layers: [{ id: 'ground', type: 'background', paint: { 'background-color': dark ? '#1d2329' : '#eef1f4' } }],
  };
}
