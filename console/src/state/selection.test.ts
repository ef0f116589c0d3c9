import { expect, it } from 'vitest';
import { Selection } from './selection.svelte';

const shown = [1, 2, 3, 5, 8];
const after = (steps: (s: Selection) => void) => {
  const selection = new Selection();
  steps(selection);
  return [...selection.ids];
};

it('selects one, and the same again no longer', () => {
  expect(after((s) => s.toggle(2))).toEqual([2]);
  expect(after((s) => (s.toggle(2), s.toggle(2)))).toEqual([]);
});

it('selects what is between two, in either direction', () => {
  expect(after((s) => (s.toggle(2, shown), s.toggle(5, shown, true)))).toEqual([2, 3, 5]);
  expect(after((s) => (s.toggle(5, shown), s.toggle(2, shown, true)))).toEqual([5, 2, 3]);
  expect(after((s) => (s.set(shown, true), s.toggle(2, shown), s.toggle(5, shown, true)))).toEqual([1, 8]);
});

it('takes one alone where a range has no beginning that is shown', () => {
  expect(after((s) => s.toggle(3, shown, true))).toEqual([3]);
  expect(after((s) => (s.toggle(7, shown), s.toggle(3, shown, true)))).toEqual([7, 3]);
});
