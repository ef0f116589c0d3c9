import type { Charge } from '../api/client';

/** The states in which a charge does not go on by itself, or not for long. */
const needing: Charge['state'][] = ['failed', 'declined', 'requires_action', 'unknown'];

export const attention = needing.join();

/** What an administrator looks for, as values of the filter state. */
export const groups = { attention, open: 'pending,unknown', held: 'authorized', done: 'paid,captured,released,waived', all: '' };

export const isAttention = (state: Charge['state']) => needing.includes(state);
