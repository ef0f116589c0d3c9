-- +goose Up
-- +goose NO TRANSACTION

-- For the list of charges in some states, newest first: few of very many are refused or open.
set lock_timeout = '1min';
drop index concurrently if exists charges_state;
create index concurrently charges_state on charges (state, id);
reset lock_timeout;
