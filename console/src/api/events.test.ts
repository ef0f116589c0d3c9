import { expect, it, vi } from 'vitest';
import { follow, handleAll, type Handlers } from './events';

it('handles the events that follow one that fails, and then reads again', () => {
  const error = vi.spyOn(console, 'error').mockReturnValue();
  const seen: string[] = [];
  const handlers = {
    status: (change) => {
      if (change.vehicle_id === 1) throw new Error('unexpected');
      seen.push(`status ${change.vehicle_id}`);
    },
    failed: () => seen.push('failed'),
    reset: () => seen.push('reset'),
  } as Partial<Handlers> as Handlers;
  handleAll([1, 2].map((id) => ({ event: 'status', data: `{"vehicle_id":${id}}` })), handlers);
  handleAll([{ event: 'status', data: '{' }, { event: 'status', data: '{"vehicle_id":3}' }], handlers);
  expect(seen).toEqual(['status 2', 'failed', 'reset', 'status 3', 'failed', 'reset']);
  expect(error).toHaveBeenCalledTimes(2);
  error.mockRestore();
  handleAll([{ event: 'status', data: '{"vehicle_id":4}' }], handlers);
  expect(seen.at(-1)).toBe('status 4');
});

it('says of a silent connection since when it was silent, also after a sleep, and of one that ended since now', async () => {
  vi.useFakeTimers();
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  vi.stubGlobal('addEventListener', () => {});
  vi.stubGlobal('removeEventListener', () => {});
  vi.stubGlobal('fetch', async (_: string, { signal }: RequestInit) => {
    const body = new ReadableStream({ start: (controller) => void (stream = controller) });
    signal?.addEventListener('abort', () => stream?.error(signal.reason));
    return { ok: true, status: 200, body };
  });
  const lost: (number | undefined)[] = [];
  const stop = follow({ reset: () => {}, connected: (yes, _, since) => yes || lost.push(since) } as Partial<Handlers> as Handlers);
  await vi.advanceTimersByTimeAsync(10_000);
  stream?.enqueue(new TextEncoder().encode(':\n\n'));
  const heard = Date.now();
  await vi.advanceTimersByTimeAsync(26_000);
  expect(lost).toEqual([heard]);
  await vi.advanceTimersByTimeAsync(2_000);
  stream?.close();
  await vi.advanceTimersByTimeAsync(0);
  expect(lost).toEqual([heard, undefined]);
  await vi.advanceTimersByTimeAsync(2_000);
  const slept = Date.now();
  vi.setSystemTime(slept + 8 * 3_600_000);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(lost.slice(2)).toEqual([slept]);
  stop();

  lost.splice(0);
  vi.stubGlobal('fetch', (_: string, { signal }: RequestInit) =>
    new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))));
  const began = Date.now();
  const stopConnecting = follow({ connected: (yes, _, since) => yes || lost.push(since) } as Partial<Handlers> as Handlers);
  await vi.advanceTimersByTimeAsync(26_000);
  expect(lost).toEqual([began]);
  stopConnecting();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
