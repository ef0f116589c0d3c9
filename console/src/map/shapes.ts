// Geometries of areas: as text that people edit, and as the one ring that can be drawn.
import type { Geometry } from '../state/areas.svelte';
import { around, type Box } from './markers';

/** A closed ring of positions: longitude, latitude. */
export type Ring = [number, number][];

/** What a text says: a polygon or several; null: neither. */
export function parseGeometry(text: string): Geometry | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const { type, geometry, coordinates } = (value ?? {}) as { type?: unknown; geometry?: unknown; coordinates?: unknown };
  if (type === 'Feature') return parseGeometry(JSON.stringify(geometry ?? null));
  return (type === 'Polygon' || type === 'MultiPolygon') && Array.isArray(coordinates) ? { type, coordinates } : null;
}

const isPosition = (p: unknown): p is number[] => Array.isArray(p) && p.length >= 2 && p.every((n) => typeof n === 'number');

/** The border of a polygon without holes, as it can be drawn; null: it has holes, or several parts. */
export function ringOf(geometry: Geometry | null): Ring | null {
  const [border, ...holes] = (geometry?.coordinates ?? []) as unknown[];
  if (geometry?.type !== 'Polygon' || holes.length > 0 || !Array.isArray(border) || border.length < 4 || !border.every(isPosition))
    return null;
  return border.map(([longitude, latitude]) => [longitude!, latitude!]);
}

/** The text of a ring that was drawn: a position a line, to a decimetre. */
export function textOf(geometry: Geometry): string {
  const round = (value: unknown): unknown =>
    typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : Array.isArray(value) ? value.map(round) : value;
  return JSON.stringify({ type: geometry.type, coordinates: round(geometry.coordinates) }).replaceAll('],[', '],\n[');
}

/** The box around all positions of a geometry; null: it has none. */
export function boxOf({ coordinates }: Geometry): Box | null {
  const positions = (value: unknown): number[][] => (isPosition(value) ? [value] : Array.isArray(value) ? value.flatMap(positions) : []);
  return around(positions(coordinates).map(([longitude, latitude]) => ({ longitude: longitude!, latitude: latitude! })));
}
