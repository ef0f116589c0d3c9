-- +goose Up

-- The time that an extension adds, which is taken back if it is not paid; and when its client last chose another card
-- after a refusal.
alter table charges add column added_ms bigint not null default 0;
alter table charges add column mended_at timestamptz;
