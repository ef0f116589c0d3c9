import { expect, it, vi } from 'vitest';
import { get } from './client';

it('gives a request up that gets no answer', async () => {
  const limit = new AbortController();
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
  vi.stubGlobal('fetch', (_: string, { signal }: RequestInit) =>
    new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))));
  const reading = get('vehicles/1');
  limit.abort();
  await expect(reading).rejects.toMatchObject({ status: 0, code: 'no_answer' });
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});
