import type { AdminBooking } from '../api/client';

/** How many minutes a vehicle should have been back for; 0: it need not be. */
export function overdueMinutes(booking: Pick<AdminBooking, 'status' | 'end_date'>, now: number): number {
  return booking.status === 'active' ? Math.max(0, Math.floor((now - Date.parse(booking.end_date)) / 60_000)) : 0;
}
