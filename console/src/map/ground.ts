// What lies below what a page draws: the style that the operator has set (--map-style), the outlines of world.ts, or nothing.
import type { StyleSpecification } from 'maplibre-gl';
import { colourOf } from '../design/colours';

/** The address of the operator's style; empty: there is none. */
export const styleAddress = () => document.querySelector<HTMLMetaElement>('meta[name="map-style"]')?.content ?? '';

export const plainGround = (dark: boolean): StyleSpecification => ({
  version: 8,
  sources: {},
  layers: [{ id: 'ground', type: 'background', paint: { 'background-color': colourOf('land', dark) } }],
});

/** Fonts of the machine: without an address of glyphs the library draws letters with these. */
export const localFont = ['system-ui, sans-serif'];

/** What texts are written in on a style: the first font of one that has an address of glyphs, which lacks others. */
export function fontOf({ glyphs, layers }: StyleSpecification): string[] {
  if (!glyphs) return localFont;
  for (const layer of layers) {
    const font = layer.type === 'symbol' && layer.layout?.['text-font'];
    if (Array.isArray(font) && font.every((name) => typeof name === 'string')) return font as string[];
  }
  return ['Noto Sans Regular'];
}
