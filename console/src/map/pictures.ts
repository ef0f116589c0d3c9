// Pictures of vehicles, drawn when they are first needed. Each state has its own shape, and its own colour.
import { colourOf } from '../design/colours';
import { stateShapes } from '../design/shapes';

export const pictureSize = 30;

/** The names of all pictures, as picture() in markers.ts makes them. */
export const pictureNames = Object.keys(stateShapes).flatMap((status) =>
  ['near', 'lost'].flatMap((contact) => ['full', 'low'].map((energy) => `${status}:${contact}:${energy}`)),
);

/** Draws a picture by its name, with ratio pixels for one of the page. */
export function drawPicture(name: string, isDark: boolean, ratio: number): HTMLCanvasElement {
  const [status = '', contact, energy] = name.split(':');
  const [colour, ground] = [colourOf(`state-${status}`, isDark), colourOf('ground', isDark)];
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = pictureSize * ratio;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser draws on no canvas');
  context.scale(ratio, ratio);
  context.lineJoin = 'round';
  const [x, y] = [pictureSize / 2, pictureSize / 2];
  context.save();
  context.translate(x, y);
  context.scale(0.85, 0.85);
  // An edge, that separates neighbours.
  const outline = new Path2D(stateShapes[status]);
  context.lineWidth = 6;
  context.strokeStyle = ground;
  context.stroke(outline);
  context.lineWidth = 3;
  context.strokeStyle = colour;
  context.fillStyle = contact === 'lost' ? ground : colour; // hollow where the unit is out of touch
  context.fill(outline);
  context.stroke(outline);
  context.restore();
  context.lineWidth = 2.5;
  if (contact === 'lost') {
    context.beginPath(); // and struck through
    context.moveTo(x - 10, y + 10);
    context.lineTo(x + 10, y - 10);
    context.strokeStyle = colourOf('bad', isDark);
    context.stroke();
  }
  if (energy === 'low') {
    context.beginPath();
    context.moveTo(x + 5, y + 5.5);
    context.lineTo(x + 14, y + 5.5);
    context.lineTo(x + 9.5, y + 13);
    context.closePath();
    context.lineWidth = 2;
    context.strokeStyle = ground;
    context.stroke();
    context.fillStyle = colourOf('warn', isDark);
    context.fill();
  }
  return canvas;
}

/** Draws the sign of a station. */
export function drawStation(isDark: boolean, ratio: number): HTMLCanvasElement {
  const size = 18;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = size * ratio;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser draws on no canvas');
  context.scale(ratio, ratio);
  context.beginPath();
  context.roundRect(1.5, 1.5, size - 3, size - 3, 4);
  context.fillStyle = colourOf('ground', isDark);
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = context.fillStyle = colourOf('quiet', isDark);
  context.stroke();
  context.font = 'bold 11px system-ui, sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText('P', size / 2, size / 2 + 0.5);
  return canvas;
}
