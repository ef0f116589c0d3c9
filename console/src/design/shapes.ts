// The shapes of states and severities, as paths around 0, 0 with a radius of about 10. Lists, legends and maps draw the same
// ones: a colour alone says nothing to who does not see it.

export const stateShapes: Record<string, string> = {
  available: 'M-9.5 0A9.5 9.5 0 1 1 9.5 0A9.5 9.5 0 1 1-9.5 0Z', // a circle
  booked: 'M0-11L11 0L0 11L-11 0Z', // a diamond
  in_use: 'M0-11.5L11 8.5H-11Z', // a triangle
  maintenance: 'M-8.5-8.5H8.5V8.5H-8.5Z', // a square
  inactive: 'M-4-10H4V-4H10V4H4V10H-4V4H-10V-4H-4Z', // a cross
};

/** Filled by even and odd: the sign within is cut out. */
export const severityShapes: Record<string, string> = {
  // an octagon, a triangle, a circle with an i, one with a tick
  critical: 'M-4.2-10.2H4.2L10.2-4.2V4.2L4.2 10.2H-4.2L-10.2 4.2V-4.2ZM-1.2-5.5H1.2L.9 1.5H-.9ZM-1.3 3.6H1.3V6H-1.3Z',
  warning: 'M0-10.5L11.5 9.5H-11.5ZM-1.2-4H1.2L.9 2.6H-.9ZM-1.3 4.2H1.3V6.8H-1.3Z',
  info: 'M-9.8 0A9.8 9.8 0 1 1 9.8 0A9.8 9.8 0 1 1-9.8 0ZM-1.3-6H1.3V-3.6H-1.3ZM-1.3-1.6H1.3V6H-1.3Z',
  none: 'M-9.8 0A9.8 9.8 0 1 1 9.8 0A9.8 9.8 0 1 1-9.8 0ZM-5.4 .2L-3.8-1.4L-1.4 1L3.8-4.2L5.4-2.6L-1.4 4.2Z',
};
