-- +goose Up

-- Each command leaves the table after a day: its room is used again before a fifth of the table is empty, which is the default.
alter table commands set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
