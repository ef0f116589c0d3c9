-- +goose Up
-- +goose NO TRANSACTION

-- For lists of commands over the whole fleet, newest first. The state comes before the id, so that those of one state, and by one look for
-- each state all, are read in their order. commands itself has none by actor: each index costs every command three entries, and the table
-- holds those of 26 hours only.
set lock_timeout = '1min';
drop index concurrently if exists commands_agency;
create index concurrently commands_agency on commands (agency_id, state, id);
drop index concurrently if exists commands_trouble;
create index concurrently commands_trouble on commands (state, id) where state in ('rejected', 'failed', 'expired', 'unknown');
reset lock_timeout;

-- The same of a partitioned table cannot be built concurrently. These are without a content: Migrate builds those of the partitions
-- concurrently, and attaches them. A partition that is added has them from the beginning.
create index if not exists settled_commands_agency on only settled_commands (agency_id, state, id);
create index if not exists settled_commands_actor on only settled_commands (actor_subject, state, id);
create index if not exists settled_commands_trouble on only settled_commands (state, id) where state in ('rejected', 'failed', 'expired', 'unknown');
