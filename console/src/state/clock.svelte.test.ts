// @vitest-environment happy-dom
import { flushSync } from 'svelte';
import { expect, it, vi } from 'vitest';

it('wakes what is old seldom, and what is new each second', async () => {
  vi.useFakeTimers();
  const { clock } = await import('./clock.svelte');
  const wakes = { old: 0, recent: 0 };
  const [old, recent] = [Date.now() - 3_600_000, Date.now() - 80_000];
  const stop = $effect.root(() => {
    $effect(() => void (clock.since(old) && wakes.old++));
    $effect(() => void (clock.since(recent) && wakes.recent++));
  });
  for (let second = 0; second < 20; second++) {
    flushSync();
    vi.advanceTimersByTime(1000);
  }
  flushSync();
  stop();
  vi.useRealTimers();
  expect(wakes.old).toBe(3);
  expect(wakes.recent).toBeLessThan(wakes.old + 13); // it has become old
  expect(wakes.recent).toBeGreaterThan(8);
});
