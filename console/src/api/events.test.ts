import { expect, it, vi } from 'vitest';
import { handleAll, type Handlers } from './events';

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
