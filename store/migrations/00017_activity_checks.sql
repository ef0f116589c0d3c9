-- +goose Up

-- As for commands. By itself, since a migration that waits for one table must not hold the other.

alter table activity
    drop constraint activity_actor_role_known,
    drop constraint activity_outcome_known;
