-- +goose Up
-- +goose NO TRANSACTION

-- Commands that a report of the vehicle would have confirmed, and that ended without one: for some minutes a late report settles or
-- contradicts them. Bits of assurance: 32, a report confirms it; 64, none can; 128, one has contradicted it.
set lock_timeout = '1min';
drop index concurrently if exists commands_unconfirmed;
create index concurrently commands_unconfirmed on commands (deadline, id) where state = 'unknown' and assurance & 224 = 32;
reset lock_timeout;
