import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { parametersOf } from '../pages/match';
import { Pages } from './pages.svelte';

let answers: ((status: number, ids?: number[], cursor?: string | null) => void)[];
let asked: string[];
beforeEach(() => {
  answers = [];
  asked = [];
  vi.stubGlobal(
    'fetch',
    (address: string) => {
      asked.push(address);
      return new Promise((resolve) =>
        answers.push((status, ids = [], cursor = null) =>
          resolve({
            ok: status < 400,
            status,
            json: async () => ({ message: 'It failed.', data: ids.map((id) => ({ id })), meta: { next_cursor: cursor } }),
          }),
        ),
      );
    },
  );
});
afterEach(() => void vi.unstubAllGlobals());

const filters = (state: string) => new URLSearchParams({ state });
const ids = (list: Pages<{ id: number }>) => list.items.map((item) => item.id);

it('does not show rows of other filters when a reading fails', async () => {
  const list = new Pages<{ id: number }>('charges');
  const [first, again, other] = [list.read(filters('paid')), () => list.read(filters('paid')), () => list.read(filters('failed'))];
  answers[0]?.(200, [1, 2], 'more');
  await first;
  const second = again();
  answers[1]?.(503);
  await second;
  expect([ids(list), list.problem]).toEqual([[1, 2], 'It failed.']); // the same, of before
  const third = other();
  answers[2]?.(503);
  await third;
  expect([ids(list), list.cursor, list.readAt, list.problem]).toEqual([[], null, null, 'It failed.']);
});

it('does not show rows of other filters while a slow answer is awaited', async () => {
  vi.useFakeTimers();
  const list = new Pages<{ id: number }>('charges');
  const first = list.read(filters('paid'));
  answers[0]?.(200, [1, 2], 'more');
  await first;
  const [again, other] = [() => list.read(filters('paid')), () => list.read(filters('failed'))];
  const second = again();
  vi.advanceTimersByTime(1000);
  expect(ids(list)).toEqual([1, 2]);
  answers[1]?.(200, [1, 2], 'more');
  await second;
  const third = other();
  vi.advanceTimersByTime(400);
  expect(ids(list)).toEqual([1, 2]);
  vi.advanceTimersByTime(200);
  expect([ids(list), list.cursor, list.reading]).toEqual([[], null, true]);
  answers[2]?.(200, [3]);
  await third;
  vi.advanceTimersByTime(1000);
  expect(ids(list)).toEqual([3]);
  vi.useRealTimers();
});

it('takes the answer of the newest reading alone', async () => {
  const list = new Pages<{ id: number }>('charges');
  const [old, newer] = [list.read(filters('paid')), list.read(filters('failed'))];
  answers[0]?.(503);
  await old;
  expect([list.problem, list.reading]).toEqual(['', true]);
  answers[1]?.(200, [3]);
  await newer;
  expect([ids(list), list.problem, list.reading]).toEqual([[3], '', false]);
});

it('follows the first page, and no longer once more of them are shown', async () => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { hidden: false });
  const list = new Pages<{ id: number }>('charges', (item) => item.id, parametersOf);
  const end = list.follow(new URLSearchParams({ from: '-1h' }), 10_000);
  await vi.advanceTimersByTimeAsync(199);
  expect(answers).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  answers[0]?.(200, [1]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(answers).toHaveLength(2);
  const [first, second] = asked.map((address) => Date.parse(new URLSearchParams(address.split('?')[1]).get('from')!));
  expect(second! - first!).toBe(9800); // the last hour moves on
  answers[1]?.(200, Array.from({ length: 51 }, (_, n) => n));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(answers).toHaveLength(2);
  end();
  list.items = [];
  await vi.advanceTimersByTimeAsync(60_000);
  expect(answers).toHaveLength(2);
  vi.useRealTimers();
});

it('reads on from the rows of the same filters alone', async () => {
  const list = new Pages<{ id: number }>('charges', (item) => item.id);
  const first = list.read(filters('paid'));
  answers[0]?.(200, [1, 2], 'more');
  await first;
  const next = list.read(filters('failed'), true); // just after other filters were chosen
  answers[1]?.(200, [3]);
  await next;
  expect(ids(list)).toEqual([3]);
});

it('keeps the next page that a person has asked for when items change meanwhile', async () => {
  vi.useFakeTimers();
  vi.stubGlobal('document', { hidden: false });
  let change = () => {};
  const list = new Pages<{ id: number }>('charges', (item) => item.id);
  const stop = list.follow(filters('paid'), 60_000, (changed) => ((change = changed), () => {}));
  await vi.advanceTimersByTimeAsync(200);
  answers[0]?.(200, [2, 1], 'more');
  await vi.advanceTimersByTimeAsync(0);
  const next = list.read(filters('paid'), true);
  change();
  await vi.advanceTimersByTimeAsync(1000);
  answers[1]?.(200, [0]);
  await next;
  expect(ids(list)).toEqual([2, 1, 0]);
  stop();
  vi.useRealTimers();
});
