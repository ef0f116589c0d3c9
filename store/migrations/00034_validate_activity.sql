-- +goose Up

-- Checks the rows that migration 31 found. Entries are added meanwhile.

alter table activity
    validate constraint activity_actor_role_known,
    validate constraint activity_outcome_known;
