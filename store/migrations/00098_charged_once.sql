-- +goose Up
-- +goose NO TRANSACTION

-- A booking is charged once for its start, and holds one deposit; what was taken back does not count.
set lock_timeout = '1min';
drop index concurrently if exists charges_start_once;
create unique index concurrently charges_start_once on charges (booking_id, kind)
    where kind in ('start', 'deposit') and goal is distinct from 'release';
set lock_timeout = '250ms';
