-- +goose Up
-- +goose NO TRANSACTION

-- To look for the charges of payments that the payment processor lists.
set lock_timeout = '1min';
drop index concurrently if exists charges_payment;
create index concurrently charges_payment on charges (coalesce(payment_key, id));
reset lock_timeout;
