import type { Charge } from '../api/client';

/** The states in which a charge does not go on by itself, or not for long. */
const needing: Charge['state'][] = ['failed', 'declined', 'requires_action', 'unknown'];

export const attention = needing.join();

/** What an administrator looks for, as values of the filter state. */
export const groups = { attention, open: 'pending,unknown', held: 'authorized', done: 'paid,captured,released,waived', all: '' };

export const isAttention = (state: Charge['state']) => needing.includes(state);

/** The states of what a client may owe. */
export const due = ['declined', 'failed', 'requires_action'];

/** Whether a client owes a charge. */
export const isDue = (c: Pick<Charge, 'state' | 'kind'>) => due.includes(c.state) && c.kind !== 'refund' && c.kind !== 'deposit';

/** What an agency has received by a charge, so that a sum of them is right: a refund is less than 0, what is only held is 0. */
export function receivedOf({ kind, state, settled }: Pick<Charge, 'kind' | 'state' | 'settled'>): number {
  if (state !== 'captured' && state !== 'paid') return 0;
  return kind === 'refund' ? -settled : settled;
}
