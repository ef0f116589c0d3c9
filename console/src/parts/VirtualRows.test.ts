// @vitest-environment happy-dom
import { createRawSnippet, mount } from 'svelte';
import { expect, it } from 'vitest';
import { language } from '../texts/index.svelte';
import VirtualRows from './VirtualRows.svelte';

it('prints as many rows as a browser lays out in a moment, and says how many it leaves out', async () => {
  await language.choose('en');
  document.body.innerHTML = '<div class="list"><table></table></div>';
  const row = createRawSnippet(() => ({ render: () => '<tr class="row"></tr>' }));
  const items = Array.from({ length: 2345 }, (_, id) => ({ id }));
  mount(VirtualRows, { target: document.querySelector('table')!, props: { items, row } });
  const rows = () => document.querySelectorAll('.row').length;
  expect(rows()).toBeLessThan(60);
  dispatchEvent(new Event('beforeprint'));
  expect(rows()).toBe(2000);
  expect(document.querySelector('table')!.textContent).toMatch(/and 345 more$/);
});
