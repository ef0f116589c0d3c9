-- +goose Up

-- How long a unit usually lets pass between two signs of it, in milliseconds.
alter table units add column gap_ms bigint;
