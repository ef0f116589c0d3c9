-- +goose Up
-- +goose NO TRANSACTION

-- Where the chain was pruned. As in migration 19, it waits for transactions that began before, and holds up none.

set lock_timeout = '1min';
drop index concurrently if exists activity_seals_pruned;
create index concurrently activity_seals_pruned on activity_seals (number) where pruned_before is not null;
reset lock_timeout;
