// The colours of tokens.css stand out from their ground, and each state and severity has a shape.
import { expect, it } from 'vitest';
import { severityShapes, stateShapes } from './shapes';
import style from '../style.css?raw';
import tokens from './tokens.css?raw';

const values = Object.fromEntries([...tokens.matchAll(/--([\w-]+): ([^;]+);/g)].map(([, name, value]) => [name!, value!]));

/** The colours of a token, light and dark. */
function colours(name: string): [string, string] {
  const value = values[name] ?? '';
  const other = /^var\(--([\w-]+)\)$/.exec(value)?.[1];
  if (other) return colours(other);
  const [, light, dark] = /^light-dark\((#\w{6}), (#\w{6})\)$/.exec(value) ?? [];
  return [light ?? '', dark ?? ''];
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

const contrast = (a: string, b: string) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
};

it('text, states and severities have a contrast of 4.5 in both themes', () => {
  const shown = Object.keys(values).filter((name) => /^(text|quiet|accent|good|warn|bad|state-.*|severity-.*)$/.test(name));
  expect(shown.length).toBe(15);
  for (const name of shown)
    for (const ground of ['ground', 'panel'])
      for (const theme of [0, 1])
        expect(contrast(colours(name)[theme]!, colours(ground)[theme]!), `${name} on ${ground}`).toBeGreaterThan(4.5);
});

it('each state and severity that has a colour has a shape', () => {
  const named = (prefix: string) => Object.keys(values).filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  expect(Object.keys(stateShapes)).toEqual(named('state-'));
  expect(Object.keys(severityShapes)).toEqual(named('severity-'));
});

it('prints in light colours, whatever the theme is', () => {
  expect(style).toMatch(/@media print \{\s*:root \{ color-scheme: light !important; \}/);
});
