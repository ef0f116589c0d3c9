// Drawing of one border on a map. Its library is loaded when a person draws.
import type { Map } from 'maplibre-gl';
import { TerraDraw, TerraDrawPolygonMode, TerraDrawSelectMode } from 'terra-draw';
import { TerraDrawMapLibreGLAdapter } from 'terra-draw-maplibre-gl-adapter';
import type { Ring } from './shapes';

const precision = 9; // decimals that the library takes
const rounded = (degrees: number) => Math.round(degrees * 10 ** precision) / 10 ** precision;

/**
 * Lets a person draw a border, or, given one, move its positions, add some and remove some (with the right
 * mouse button). drawn is called with each border that is closed. Returns what ends it.
 */
export function startDrawing(map: Map, dark: boolean, ring: Ring | null, drawn: (ring: Ring) => void): () => void {
  const colour = dark ? '#6db5f2' : '#0b5fa5';
  const ground = dark ? '#14181c' : '#ffffff';
  const shape = { fillColor: colour, fillOpacity: 0.2, outlineColor: colour, outlineWidth: 3 } as const;
  const draw = new TerraDraw({
    adapter: new TerraDrawMapLibreGLAdapter({ map, coordinatePrecision: precision }),
    modes: [
      new TerraDrawPolygonMode({
        styles: { ...shape, closingPointColor: colour, closingPointOutlineColor: ground, closingPointWidth: 6 },
      }),
      new TerraDrawSelectMode({
        flags: { polygon: { feature: { draggable: true, coordinates: { midpoints: true, draggable: true, deletable: true } } } },
        styles: {
          selectedPolygonColor: colour, selectedPolygonFillOpacity: 0.2,
          selectedPolygonOutlineColor: colour, selectedPolygonOutlineWidth: 3,
          selectionPointColor: ground, selectionPointOutlineColor: colour, selectionPointWidth: 6, selectionPointOutlineWidth: 3,
          midPointColor: colour, midPointOutlineColor: ground, midPointWidth: 4, midPointOutlineWidth: 1,
        },
      }),
    ],
  });
  draw.start();
  const edit = (id: string | number) => {
    draw.setMode('select');
    draw.selectFeature(id);
  };
  const tell = (id: string | number) => {
    const { geometry } = draw.getSnapshotFeature(id) ?? {};
    if (geometry?.type === 'Polygon') drawn(geometry.coordinates[0] as Ring);
  };
  draw.on('finish', (id, { action }) => {
    if (action !== 'draw') return tell(id);
    // Not within the event, which the mode has still to end.
    setTimeout(() => {
      if (!draw.enabled) return;
      edit(id);
      tell(id); // now its positions can be dragged
    });
  });
  // Positions that are added or removed end no movement.
  draw.on('change', (ids, type) => {
    if (type === 'update' && draw.getMode() === 'select') for (const id of ids) tell(id);
  });
  const [added] = ring
    ? draw.addFeatures([
        {
          type: 'Feature',
          geometry: { type: 'Polygon', coordinates: [ring.map((p) => p.map(rounded))] },
          properties: { mode: 'polygon' },
        },
      ])
    : [];
  if (added?.valid && added.id !== undefined) edit(added.id);
  else draw.setMode('polygon');
  return () => {
    const laidAnew = !map.getSource('td-polygon'); // which has taken away what the library would remove
    try {
      draw.stop(); // first of all its listeners
    } catch (error) {
      if (!laidAnew) throw error;
    }
  };
}
