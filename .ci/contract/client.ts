// What an app writes against the types that openapi-typescript makes, with default settings: members that may be absent may be left out.
import type { paths } from './types/schema';

type Body<T> = T extends { requestBody: { content: { 'application/json': infer B } } } ? B : never;

export const card: Body<paths['/api/v1/client/payment-methods']['post']> = { payment_method_id: 'pm_card_visa' };
export const signal: Body<paths['/api/v1/admin/vehicles/{vehicle}/control/attention']['post']> = { signal: 'horn' };
export const bulk: Body<paths['/api/v1/admin/commands']['post']> = {
  action: 'attention',
  vehicle_ids: [42],
  parameters: { signal: 'horn' },
};
export const halt: Body<paths['/api/v1/admin/halts']['put']> = { reason: 'Doors open by themselves' };
export const refund: Body<paths['/api/v1/admin/bookings/{booking}/refund']['post']> = { amount: 10, reason: 'the heating was broken' };
