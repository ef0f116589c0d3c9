// The colours of tokens.css for what is drawn on a canvas, which knows no custom properties.
const read = new Map<string, string>();

/** A token's colour in a theme, as rgb(). */
export function colourOf(token: string, dark: boolean): string {
  const key = `${token} ${dark}`;
  let colour = read.get(key);
  if (colour === undefined) {
    const probe = document.body.appendChild(document.createElement('span'));
    probe.style.forcedColorAdjust = 'none'; // a map in one colour shows nothing
    probe.style.colorScheme = dark ? 'dark' : 'light';
    probe.style.color = `var(--${token})`;
    colour = getComputedStyle(probe).color;
    probe.remove();
    read.set(key, colour);
  }
  return colour;
}
