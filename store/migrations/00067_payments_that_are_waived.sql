-- +goose Up

-- An amount that is too small for the payment processor is waived.
alter table charges drop constraint charges_state_known;
alter table charges add constraint charges_state_known
    check (state in ('pending', 'unknown', 'requires_action', 'declined', 'failed', 'authorized', 'paid', 'captured', 'released', 'waived')) not valid;

-- How long after the start of a booking its client needs a payment that was made to unlock the vehicle.
alter table agencies add column payment_wait interval not null default '10 minutes';
alter table agencies add constraint agencies_payment_wait_positive check (payment_wait >= '0') not valid;
