-- +goose Up
-- +goose NO TRANSACTION

-- Decides, whatever instances do: one open alert of a rule and a vehicle or person, and, where it is about one, a booking.
set lock_timeout = '1min';
drop index concurrently if exists alerts_open_once;
create unique index concurrently alerts_open_once on alerts (rule, coalesce(vehicle_id, 0), person, coalesce(booking_id, 0))
    where cleared_at is null;
drop index concurrently if exists alerts_one_open;
set lock_timeout = '250ms';
