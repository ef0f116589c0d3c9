// Which vehicles staff can book for a time, and what they then cost: for a form in which it is chosen.
import { get, type FreeVehicle } from '../api/client';

const readAfter = 300; // a person may still be typing

/** What is free in the time that a form has; null: the form is closed. Call it while a component is made. */
export function freeVehicles(time: () => { from: number; to: number } | null) {
  let found = $state.raw<ReadonlyMap<number, FreeVehicle> | null>(null);
  let problem = $state('');
  const at = $derived.by(() => {
    const { from = NaN, to = NaN } = time() ?? {};
    return from < to ? `from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}` : '';
  });
  $effect(() => {
    found = null;
    problem = '';
    if (!at) return;
    let stopped = false;
    const timer = setTimeout(() => {
      get<FreeVehicle[]>(`fleet/free?${at}`).then(
        ({ data }) => stopped || (found = new Map(data.map((v) => [v.vehicle_id, v]))),
        (error) => stopped || (problem = error instanceof Error ? error.message : String(error)),
      );
    }, readAfter);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  });
  return {
    /** By vehicle; null: not known. */
    get found() {
      return found;
    },
    get problem() {
      return problem;
    },
    /** Whether a vehicle can be booked, as far as is known. */
    has: (id: number) => found?.has(id) ?? true,
  };
}
