// @vitest-environment happy-dom
import { expect, it, vi } from 'vitest';
import { doubled, openConsole } from './service';

const gate = vi.hoisted(() => {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
});
vi.mock('../parts/Dialogs.svelte', async (load) => {
  await gate.opened;
  return load();
});

it('keeps what is typed for the palette from the page while the palette is loaded', async () => {
  const pages = await openConsole({ ...doubled, halts: [] });
  const press = (key: string, ctrlKey = false) =>
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key, ctrlKey, bubbles: true, cancelable: true }));
  press('k', true);
  for (const key of 'threshold') press(key);
  gate.open();
  await pages.until(() => document.querySelector('dialog[open]'));
  expect(document.querySelectorAll('dialog[open]')).toHaveLength(1);
  expect(document.querySelector('dialog[open] [role="combobox"]')).not.toBeNull();
  await pages.close();
});
