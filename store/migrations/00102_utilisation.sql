-- +goose Up
-- +goose NO TRANSACTION

-- The rentals of the last days, for the utilisation of a fleet.
set lock_timeout = '1min';
drop index concurrently if exists bookings_ended;
create index concurrently bookings_ended on bookings (ended_at) where ended_at is not null;
set lock_timeout = '250ms';
