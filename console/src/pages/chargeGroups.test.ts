import { expect, it } from 'vitest';
import { receivedOf } from './chargeGroups';

it.each([
  ['start', 'paid', 5],
  ['refund', 'paid', -5],
  ['refund', 'pending', 0],
  ['deposit', 'authorized', 0],
  ['deposit', 'captured', 5],
  ['start', 'released', 0],
] as const)('of a %s that is %s %d was received', (kind, state, received) =>
  expect(receivedOf({ kind, state, settled: 5 })).toBe(received),
);
