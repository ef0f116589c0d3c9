// What may be done to a vehicle, and why not.
import type { Action, Halt, Me } from '../api/client';
import type { Texts } from '../texts/en';
import type { VehicleRow } from './vehicleRow';

/** An action that people order; report-state comes from the service itself. */
export type Ordered = Exclude<Action, 'report-state'>;

/** The actions in the order of their buttons. */
const traits: Record<
  Ordered,
  {
    group: 'doors' | 'drive' | 'find';
    dangerous: boolean; // opens, starts or stops a car
    standing: boolean; // only while the car stands (docs/protocol.md, CMD-7)
    opening: boolean; // gives a car into the hands of who stands there
  }
> = {
  lock: { group: 'doors', dangerous: false, standing: false, opening: false },
  unlock: { group: 'doors', dangerous: true, standing: true, opening: true },
  'enable-driving': { group: 'drive', dangerous: true, standing: false, opening: true },
  'disable-driving': { group: 'drive', dangerous: true, standing: true, opening: false },
  'unlock-and-enable-driving': { group: 'drive', dangerous: true, standing: true, opening: true },
  'lock-and-disable-driving': { group: 'drive', dangerous: true, standing: true, opening: false },
  attention: { group: 'find', dangerous: false, standing: false, opening: false },
  'open-top-case': { group: 'doors', dangerous: true, standing: true, opening: true },
};

export const actions = Object.keys(traits) as Ordered[];
export const harmless: Action[] = actions.filter((action) => !traits[action].dangerous);
export const opening: Action[] = actions.filter((action) => traits[action].opening);
const whileStanding: Action[] = actions.filter((action) => traits[action].standing);

export type Group = (typeof traits)[Ordered]['group'];
export const groupOf = (action: Ordered): Group => traits[action].group;

export interface Situation {
  /** null: not known. */
  locked: boolean | null;
  /** Whether a client has it. */
  inUse: boolean;
  moving: boolean;
}

/** The two actions that a vehicle most likely needs, of those that its unit offers. */
export function mainActions({ locked, inUse, moving }: Situation, offered: Action[] = actions): Ordered[] {
  const wanted: Ordered[] = moving
    ? ['lock', 'attention']
    : [locked ? 'unlock' : 'lock', inUse ? 'lock-and-disable-driving' : 'unlock-and-enable-driving'];
  return [...new Set([...wanted, ...actions])].filter((action) => offered.includes(action)).slice(0, 2);
}

/** What is known of a vehicle that matters to its buttons; undefined: not known here. */
export interface Target {
  unit: string | null;
  commands?: Action[] | undefined;
  contact?: string | undefined;
  speed?: VehicleRow['speed'];
  /** Who ordered the command that is open; null: there is none. */
  busy: string | null;
}

// As the service refuses it: by a speed that is fresh.
const movingAbove = 5;
const freshFor = 30_000;

/** Why an action is off; empty: it is on. */
export function whyNot(action: Action, me: Me | null, target: Target, halt: Halt | null, now: number, texts: Texts): string {
  if (me?.level === 'viewer') return texts.off.viewer;
  if (target.unit === null) return texts.off.noUnit;
  if (target.commands && !target.commands.includes(action)) return texts.off.capability;
  if (halt) return texts.off.halted(halt.reason);
  if (target.contact === 'offline') return texts.off.offline;
  const { speed } = target;
  if (speed && whileStanding.includes(action) && (speed.kmh ?? 0) > movingAbove && now - speed.at < freshFor) return texts.off.moving;
  if (target.busy !== null) return texts.off.busy(target.busy);
  return '';
}

/** How many orders of a bulk would be refused for each reason, as far as is known before. */
export function refusals(reasons: string[]): [reason: string, count: number][] {
  const counts = new Map<string, number>();
  for (const reason of reasons) if (reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** An order to more vehicles is confirmed by their number. */
export const mostWithoutNumber = 20;

/** Whether an order to that number of vehicles, some of which are perhaps with clients, asks first. */
export const asksFirst = (action: Action, vehicles: number, inUse: boolean) =>
  action !== 'lock' || vehicles > mostWithoutNumber || inUse;
