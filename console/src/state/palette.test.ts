import { expect, it } from 'vitest';
import type { Ordered } from './actions';
import { bookingPage, find, referencesOf, scoreWord, type Found } from './palette';
import type { VehicleRow } from './vehicleRow';

const vehicle = (id: number, plate: string, model = 'Opel Corsa') =>
  ({ id, plate, model, text: `${id} ${plate} ${model} 35209900417${id}`.toLowerCase() }) as VehicleRow;
const vehicles = [vehicle(1, 'M-IM 2101', 'Volkswagen Golf'), vehicle(5, 'M-IM 2105'), vehicle(3, '852 IMX', 'NIU NQi')];
const items = [
  { id: 'page:/commands', label: 'Commands' },
  { id: 'halt', label: 'Halt commands' },
  { id: 'theme:dark', label: 'Theme: dark' },
];
const names: [Ordered, string][] = [
  ['lock', 'Verriegeln'],
  ['unlock', 'Entriegeln öffnen'],
  ['attention', 'Lichthupe'],
];
const say = (f: Found) => (f.kind === 'item' ? f.item.id : f.kind === 'vehicle' ? `open ${f.vehicle.id}` : `${f.action} ${f.vehicle.id}`);
const first = (query: string, current: number | null = null) => find(query, items, vehicles, names, current).map(say)[0];

it.each([
  ['lock M-IM 2101', 'lock 1'],
  ['2101 unlock', 'unlock 1'],
  ['verr mim2105', 'lock 5'],
  ['m-im 2105', 'open 5'],
  ['m-im2105', 'open 5'],
  ['öffnen 2105', 'unlock 5'],
  ['golf', 'open 1'],
  ['852', 'open 3'],
  ['halt', 'halt'],
  ['comm', 'page:/commands'],
  ['dark', 'theme:dark'],
  ['cmmnds', 'page:/commands'],
])('%s means %s', (query, expected) => expect(first(query)).toBe(expected));

it('acts on the vehicle that is open where none is named', () => {
  expect(first('unlock', 5)).toBe('unlock 5');
  expect(first('unlock')).toBeUndefined();
});

it('offers what may be done to the one vehicle that is found, and no worse matches', () => {
  expect(find('2105', items, vehicles, names, null).map(say)).toEqual(['open 5', 'lock 5', 'unlock 5', 'attention 5']);
  expect(find('unlock 1', items, vehicles, names, null).map(say)).toEqual(['unlock 1']);
});

it('finds nothing where a word fits nothing, and everything chosen by no word', () => {
  expect(first('lock zzz')).toBeUndefined();
  expect(find('', items, vehicles, names, null).map(say)).toEqual(['page:/commands', 'halt', 'theme:dark']);
});

it('does not take digits for one another', () => {
  expect(scoreWord('211', 'M-IM2101')).toBeNull();
});

it.each([
  ['booking 2', '#/bookings/2'],
  ['Buchung 17', '#/bookings/17'],
  ['bk2', '#/bookings/2'],
  ['booking', null],
  ['lock 2', null],
])('%j names the booking page %s', (query, want) => expect(bookingPage(query)).toBe(want));

it.each([
  ['BK-2026-00002', ['BK-2026-00002']],
  [' bk-2026-123456 ', ['BK-2026-123456']],
  ['2025-00042', ['BK-2025-00042']],
  ['200042', ['BK-2026-200042', 'BK-2025-200042']],
  ['2101', []],
  ['M-IM 21012', []],
])('%j means the references %j', (query, want) => expect(referencesOf(query, 2026)).toEqual(want));
