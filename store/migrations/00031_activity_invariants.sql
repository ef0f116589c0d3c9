-- +goose Up

-- As migration 4 had them. Separate from migration 30: a migration that waits for one table must not hold the other.

alter table activity
    add constraint activity_actor_role_known check (actor_role in ('admin', 'client', 'system')) not valid,
    add constraint activity_outcome_known
        check (outcome in ('', 'executed', 'not_executed', 'failed', 'unknown')) not valid;
