import { expect, it } from 'vitest';
import type { Archive } from './archive';
import { boldFont, font } from './ground';
import { ground } from './streets';

const archive: Archive = { url: 'pmtiles://http://localhost/console/map.pmtiles', attribution: '© OpenStreetMap', bounds: [11, 48, 12, 49], minZoom: 0 };

it('lies plain where there is no file', () => {
  expect(ground(false, null, 'en')).toMatchObject({ sources: {}, layers: [{ id: 'ground', type: 'background' }] });
});

it('needs nothing from elsewhere: letters by the fonts of the machine, and no pictures', () => {
  for (const dark of [false, true]) {
    const { glyphs, sprite, layers, sources } = ground(dark, archive, 'de');
    expect([glyphs, sprite]).toEqual([undefined, undefined]);
    expect(sources).toEqual({ streets: { type: 'vector', url: archive.url, attribution: archive.attribution } });
    expect(new Set(layers.map((l) => l.id)).size).toBe(layers.length);
    const texts = layers.filter((l) => l.type === 'symbol');
    expect(texts.length).toBeGreaterThan(5);
    for (const { layout } of texts) expect([font, boldFont]).toContainEqual(layout?.['text-font']);
  }
});

it('names streets as their signs do, and places in the language of the page', () => {
  const fieldOf = (id: string) => ground(true, archive, 'de').layers.find((l) => l.id === id)?.layout as Record<string, unknown>;
  expect(fieldOf('minor-names')['text-field']).toEqual(['get', 'name']);
  expect(fieldOf('localities')['text-field']).toEqual(['coalesce', ['get', 'name:de'], ['get', 'name']]);
});

it('has other colours where it is dark', () => {
  const colours = (dark: boolean) => JSON.stringify(ground(dark, archive, 'en')).match(/#[0-9a-f]{6}/g) ?? [];
  const [light, night] = [colours(false), colours(true)];
  expect(light).toHaveLength(night.length);
  expect(light.filter((colour, i) => colour === night[i])).toEqual([]);
});
