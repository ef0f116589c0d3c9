// What the service says by codes, in each language. The types hold each code of the contract to a text in both.
import type { components } from '../api/contract';

export type Code = components['schemas']['Error']['code'];

export interface Refusals {
  codes: Record<Code, string>;
  /** What a unit added to its answer. */
  details: Record<string, string>;
}

export const en: Refusals = {
  codes: {
    malformed_json: 'The request is not valid JSON.',
    idempotency_key_required: 'The request has no Idempotency-Key.',
    default_payment_method: 'This is the default card: choose another default first.',
    payment_method_in_use: 'A booking uses this card.',
    webhook_signature_invalid: 'The signature is not that of the payment processor.',
    unauthenticated: 'You are not signed in.',
    agency_signature_missing: 'The request has no agency signature.',
    agency_signature_invalid: 'The agency signature is not valid.',
    agency_signature_stale: 'The agency signature is too old.',
    agency_signature_replayed: 'The agency signature was used before.',
    forbidden: 'Your role does not allow this.',
    agency_mismatch: 'The access token and the signature are of different agencies.',
    not_found: 'Not found.',
    vehicle_not_found: 'There is no such vehicle, or it is another agency’s.',
    command_not_found: 'There is no such command, or it is another agency’s.',
    bulk_not_found: 'There is no such bulk command, or it is another agency’s.',
    station_not_found: 'There is no such station.',
    id_taken: 'This id is already in use.',
    halt_not_found: 'This halt is not in force any more.',
    agency_not_found: 'There is no such agency.',
    agency_key_not_found: 'There is no such agency key.',
    booking_not_found: 'There is no such booking, or it is another agency’s.',
    payment_method_not_found: 'There is no such card.',
    method_not_allowed: 'The service does not offer this.',
    vehicle_has_no_unit: 'This vehicle has no telematics unit. Nothing was sent.',
    command_not_supported: 'This vehicle cannot do this. Nothing was sent.',
    best_effort_denied: 'The unit of this vehicle might execute the command too late, and the agency has not allowed that. Nothing was sent.',
    vehicle_state_conflict: 'The state of the vehicle does not allow this now. Nothing was executed.',
    command_in_progress: 'Another command to this vehicle is running. Nothing was sent.',
    idempotency_in_progress: 'The same request is still running.',
    vehicle_not_available: 'The vehicle is not free in this time.',
    booking_not_cancellable: 'This booking cannot be cancelled any more.',
    booking_not_extendable: 'This booking cannot be extended.',
    booking_not_active: 'This booking is not active.',
    booking_state_conflict: 'The state of the booking does not allow this.',
    booking_overdue: 'The booking’s end has passed.',
    payment_required: 'A payment is due first.',
    payment_pending: 'A payment is still in progress.',
    body_too_large: 'The request is too large.',
    unsupported_media_type: 'The request is not JSON.',
    validation_failed: 'The request is not valid.',
    idempotency_mismatch: 'Another request was sent with the same key.',
    card_declined: 'The bank declined the card.',
    payment_method_invalid: 'This card cannot be used.',
    payment_method_limit: 'The client has the maximum number of cards.',
    payment_method_required: 'The client has no card.',
    refund_exceeds_paid: 'More would be refunded than was paid.',
    rate_limited: 'Too many requests. Wait a moment.',
    internal: 'Internal error. The service’s log has the cause under the request id.',
    command_rejected: 'The unit rejected the command.',
    command_failed: 'The vehicle tried, and failed.',
    vehicle_offline: 'The vehicle is offline. Nothing was sent.',
    telematics_unavailable: 'The service cannot send commands now. Nothing was sent.',
    commands_halted: 'Commands are halted. Nothing was sent.',
    payment_processor_unavailable: 'The payment processor is unavailable. Try again in a moment.',
    service_unavailable: 'The service is unavailable. Try again in a moment.',
    command_timeout: 'The vehicle did not answer in time. It may still execute the command.',
  },
  details: { moving: 'it is moving', door_open: 'a door is open', ignition_on: 'the ignition is on' },
};
