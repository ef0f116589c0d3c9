import { expect, it } from 'vitest';
import { codeText, refusalOf, saidByUnit } from './codes';
import { de } from './de';
import { en } from './en';
import type { Code } from './refusals';
import { unitTexts } from './units';

// What the contract (httpapi/openapi.yaml) has, as its types are generated from it.
const [contract = ''] = Object.values(import.meta.glob<string>('../api/contract.d.ts', { query: '?raw', import: 'default', eager: true }));

/** The words of a list in the contract. */
const words = (list: string) => [...list.matchAll(/"([^"]+)"/g)].map(([, word]) => word!);
const lists = (name: string) =>
  [...contract.matchAll(new RegExp(`^\\s*${name}\\??: \\(?((?:"[^"]*"(?: \\| )?)+)`, 'gm'))].map(([, list]) => words(list!));
const keys = (texts: object): string[] =>
  Object.entries(texts).flatMap(([key, value]) => (typeof value === 'object' ? [key, ...keys(value)] : [key]));

it.each([['English', en], ['German', de]])('says each error code of the contract in %s', (_, texts) => {
  const codes = lists('code').find((list) => list.includes('validation_failed')) ?? [];
  expect(codes.length).toBeGreaterThan(50);
  expect(codes.filter((code) => !(texts.refusals.codes as Record<string, string>)[code])).toEqual([]);
});

// Of keys of agencies, which have no page here, and shapes of JSON.
const notShown = ['active', 'retiring', 'revoked', 'hold', 'capture', 'release', 'card', 'Feature', 'true'];
it.each([
  ['English', [en, unitTexts.en]],
  ['German', [de, unitTexts.de]],
])('says each state, outcome, kind and level of the contract in %s', (_, texts) => {
  const known = new Set(texts.flatMap(keys));
  const all = new Set(
    ['state', 'status', 'outcome', 'kind', 'level', 'signal_quality', 'problems', 'action', 'role', 'powertrain', 'payment_status'].flatMap(
      (name) => lists(name).flat(),
    ),
  );
  for (const type of ['Action', 'Outcome', 'ConnectivityStatus', 'PlatformVehicleStatus', 'Powertrain', 'BookingStatus', 'ChargeState'])
    for (const list of lists(type)) for (const word of list) all.add(word);
  expect(all.size).toBeGreaterThan(60);
  expect([...all].filter((word) => !known.has(word.replace(/^command\./, '')) && !notShown.includes(word))).toEqual([]);
});

it('adds what a unit said, and what only the service knows', () => {
  const error = { code: 'vehicle_state_conflict', reason: 'state_conflict', detail: 'moving' } as const;
  expect(refusalOf(error, 'x', de)).toBe(
    'Der Zustand des Fahrzeugs erlaubt das gerade nicht. Es wurde nichts ausgeführt. (der Zustand des Fahrzeugs verbietet es: es fährt)',
  );
  const said = (code: Code, message: string) => refusalOf({ code, reason: null, detail: null }, message, en);
  expect(said('validation_failed', 'The request is not valid: amount must be at most 20.')).toBe(
    'The request is not valid. (amount must be at most 20)',
  );
  // Each of these has several causes.
  expect(said('booking_not_extendable', 'end_date must be in the future.')).toBe(
    'This booking cannot be extended. (end_date must be in the future)',
  );
  expect(said('vehicle_not_available', 'The vehicle is out of service (inactive).')).toMatch(/out of service/);
  expect(said('booking_state_conflict', 'No deposit of the booking is held.')).toMatch(/No deposit/);
  expect(refusalOf({ code: 'of_later' as never, reason: null, detail: null }, 'As it is.', de)).toBe('As it is.');
  expect([
    codeText('idempotency_replayed', en),
    codeText('of_later', en),
    saidByUnit({ reason: 'door_open', detail: 'rear left' }, en),
  ]).toEqual(['sent again, and done once', 'of_later', 'a door is open: rear left']);
});
