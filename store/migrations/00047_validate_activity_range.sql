-- +goose Up

-- Checks the rows that migration 46 found. Entries are added meanwhile.

alter table activity validate constraint activity_range;
