import type { Action } from './api/client';
import type { VehicleRow } from './state/vehicleRow';

/** What can be tried with the demo fleet of `make dev`, in this order. Texts: tourTexts. */
export const steps: { vehicle: number; action: Action }[] = [
  { vehicle: 1, action: 'lock' },
  { vehicle: 7, action: 'lock' },
  { vehicle: 5, action: 'unlock' },
  { vehicle: 6, action: 'disable-driving' },
  { vehicle: 10, action: 'lock' },
  { vehicle: 8, action: 'lock' },
  { vehicle: 9, action: 'lock' },
];

// The units of cars 1 and 10 of the demo fleet: the tour must never move other cars.
const units = { 1: '352099004170375', 10: '352099004173700' } as const;

export function isDemo(vehicles: { get(id: number): VehicleRow | undefined }): boolean {
  return Object.entries(units).every(([id, unit]) => vehicles.get(Number(id))?.unit === unit);
}
