import { afterEach, expect, it, vi } from 'vitest';
import { Wanted } from './wanted.svelte';

afterEach(() => void vi.useRealTimers());

it('is taken once, by its vehicle, and not long after it was chosen', () => {
  vi.useFakeTimers();
  const wanted = new Wanted();
  wanted.set(4, 'unlock');
  expect(wanted.consume(5)).toBeNull();
  expect(wanted.consume(4)).toEqual({ action: 'unlock', late: false });
  expect(wanted.consume(4)).toBeNull();
  wanted.set(4, 'unlock');
  vi.advanceTimersByTime(10_000);
  expect(wanted.consume(4)).toEqual({ action: 'unlock', late: true });
});
