-- +goose Up

-- What identifies a booking, and a payment at the processor: derived from their causes (rental/identity.go), so that a request that is
-- repeated after its record was lost leads to the same payment. Null: made before; then other columns identify them.
alter table bookings add column cause uuid;
alter table charges add column payment_key uuid;
