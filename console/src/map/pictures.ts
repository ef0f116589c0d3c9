// Pictures of vehicles, drawn when they are first needed. Each state has its own shape, and its own colour.

interface Colours {
  ground: string;
  edge: string;
  states: Record<string, string>;
  lost: string;
  low: string;
}

const light: Colours = {
  ground: '#ffffff',
  edge: '#ffffff',
  states: { available: '#11703a', booked: '#6a3fa0', in_use: '#0b5fa5', maintenance: '#8a5200', inactive: '#55636f' },
  lost: '#b3261e',
  low: '#8a5200',
};
const dark: Colours = {
  ground: '#14181c',
  edge: '#14181c',
  states: { available: '#5fd18e', booked: '#c7a6f5', in_use: '#6db5f2', maintenance: '#f0b34f', inactive: '#9fb0bf' },
  lost: '#ff8a80',
  low: '#f0b34f',
};

export const pictureSize = 30;

/** The outline of a state, in a circle of radius r around x, y. */
function outline(context: CanvasRenderingContext2D, status: string, x: number, y: number, r: number) {
  const corners = (points: [number, number][]) => {
    points.forEach(([dx, dy], i) => context[i === 0 ? 'moveTo' : 'lineTo'](x + dx * r, y + dy * r));
    context.closePath();
  };
  context.beginPath();
  switch (status) {
    case 'booked': // a diamond
      return corners([[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]]);
    case 'in_use': // a triangle
      return corners([[0, -1.15], [1.1, 0.85], [-1.1, 0.85]]);
    case 'maintenance': // a square
      return corners([[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]]);
    case 'inactive': // a cross
      return corners([
        [-0.4, -1],
        [0.4, -1],
        [0.4, -0.4],
        [1, -0.4],
        [1, 0.4],
        [0.4, 0.4],
        [0.4, 1],
        [-0.4, 1],
        [-0.4, 0.4],
        [-1, 0.4],
        [-1, -0.4],
        [-0.4, -0.4],
      ]);
    default: // a circle
      context.arc(x, y, r * 0.95, 0, 2 * Math.PI);
  }
}

/** The names of all pictures, as picture() in markers.ts makes them. */
export const pictureNames = Object.keys(light.states).flatMap((status) =>
  ['near', 'lost'].flatMap((contact) => ['full', 'low'].map((energy) => `${status}:${contact}:${energy}`)),
);

/** Draws a picture by its name, with ratio pixels for one of the page. */
export function drawPicture(name: string, isDark: boolean, ratio: number): HTMLCanvasElement {
  const [status = '', contact, energy] = name.split(':');
  const colours = isDark ? dark : light;
  const colour = colours.states[status] ?? '';
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = pictureSize * ratio;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser draws on no canvas');
  context.scale(ratio, ratio);
  context.lineJoin = 'round';
  const [x, y, r] = [pictureSize / 2, pictureSize / 2, 8.5];
  // An edge, that separates neighbours.
  outline(context, status, x, y, r);
  context.lineWidth = 5;
  context.strokeStyle = colours.edge;
  context.stroke();
  outline(context, status, x, y, r);
  context.lineWidth = 2.5;
  context.strokeStyle = colour;
  context.fillStyle = contact === 'lost' ? colours.ground : colour; // hollow where the unit is out of touch
  context.fill();
  context.stroke();
  if (contact === 'lost') {
    context.beginPath(); // and struck through
    context.moveTo(x - 10, y + 10);
    context.lineTo(x + 10, y - 10);
    context.strokeStyle = colours.lost;
    context.stroke();
  }
  if (energy === 'low') {
    context.beginPath();
    context.moveTo(x + 5, y + 5.5);
    context.lineTo(x + 14, y + 5.5);
    context.lineTo(x + 9.5, y + 13);
    context.closePath();
    context.lineWidth = 2;
    context.strokeStyle = colours.edge;
    context.stroke();
    context.fillStyle = colours.low;
    context.fill();
  }
  return canvas;
}

/** Draws the sign of a station. */
export function drawStation(isDark: boolean, ratio: number): HTMLCanvasElement {
  const colours = isDark ? dark : light;
  const size = 18;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = size * ratio;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser draws on no canvas');
  context.scale(ratio, ratio);
  context.beginPath();
  context.roundRect(1.5, 1.5, size - 3, size - 3, 4);
  context.fillStyle = colours.ground;
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = context.fillStyle = colours.states.inactive ?? '';
  context.stroke();
  context.font = 'bold 11px system-ui, sans-serif';
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText('P', size / 2, size / 2 + 0.5);
  return canvas;
}
