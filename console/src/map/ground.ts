// What texts on a map are written in.

/** Fonts of the machine: without an address of glyphs the library draws letters with these. */
export const font = ['system-ui, sans-serif'];

/** The same, heavier: the library reads the weight from the first name. */
export const boldFont = ['semibold, system-ui, sans-serif'];
