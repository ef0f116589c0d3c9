-- +goose Up

-- The sessions before the current one, the latest first: presence of theirs that an instance hands in late does not
-- count. It is on no index: units change with every message.
alter table units add column former_sessions text[] not null default '{}';
