import { expect, it } from 'vitest';
import type { Action, Me } from '../api/client';
import { en } from '../texts/en';
import { mainActions, whyNot, type Ordered, type Situation, type Target } from './actions';

const operator = { level: 'operator' } as Me;
const target: Target = { unit: 'u', busy: null };
const driving = (kmh: number | null, age: number): Target => ({ ...target, speed: { kmh, at: -age } });

it.each<[Action, Target, string]>([
  ['unlock', target, ''],
  ['unlock', driving(50, 1000), en.off.moving],
  ['disable-driving', driving(50, 1000), en.off.moving],
  ['lock', driving(50, 1000), ''],
  ['disable-driving', driving(4, 1000), ''],
  ['disable-driving', driving(50, 31_000), ''],
  ['disable-driving', driving(null, 1000), ''],
  ['unlock', { ...driving(50, 1000), contact: 'offline' }, en.off.offline],
])('%s of %j is off because of %j', (action, of, want) => expect(whyNot(action, operator, of, null, 0, en)).toBe(want));

const parked: Situation = { locked: true, inUse: false, moving: false };
it.each<[Situation, Action[] | undefined, Ordered[]]>([
  [parked, undefined, ['unlock', 'unlock-and-enable-driving']],
  [{ ...parked, locked: false }, undefined, ['lock', 'unlock-and-enable-driving']],
  [{ ...parked, locked: null }, undefined, ['lock', 'unlock-and-enable-driving']],
  [{ ...parked, inUse: true }, undefined, ['unlock', 'lock-and-disable-driving']],
  [{ locked: false, inUse: true, moving: true }, undefined, ['lock', 'attention']],
  [parked, ['unlock', 'lock'], ['unlock', 'lock']],
  [parked, [], []],
])('a vehicle that is %j, with %j, needs %j first', (situation, offered, want) => expect(mainActions(situation, offered)).toEqual(want));
