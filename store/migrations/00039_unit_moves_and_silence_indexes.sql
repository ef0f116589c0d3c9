-- +goose Up
-- +goose NO TRANSACTION

set lock_timeout = '1min';
drop index concurrently if exists units_moved;
create index concurrently units_moved on units (moved_at) where moved_at is not null;
drop index concurrently if exists units_check;
create index concurrently units_check on units (check_at) where check_at is not null;
reset lock_timeout;
