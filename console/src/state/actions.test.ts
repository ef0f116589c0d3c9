import { expect, it } from 'vitest';
import type { Action, Me } from '../api/client';
import { en } from '../texts/en';
import { whyNot, type Target } from './actions';

const operator = { level: 'operator' } as Me;
const target: Target = { unit: 'u', agency_id: 1, busy: null };
const driving = (kmh: number | null, age: number): Target => ({ ...target, speed: { kmh, age } });

it.each<[Action, Target, string]>([
  ['unlock', target, ''],
  ['unlock', driving(50, 1000), en.off.moving],
  ['disable-driving', driving(50, 1000), en.off.moving],
  ['lock', driving(50, 1000), ''],
  ['disable-driving', driving(4, 1000), ''],
  ['disable-driving', driving(50, 31_000), ''],
  ['disable-driving', driving(null, 1000), ''],
  ['unlock', { ...driving(50, 1000), contact: 'offline' }, en.off.offline],
])('%s of %j is off because of %j', (action, of, want) => expect(whyNot(action, operator, of, null, en)).toBe(want));
