-- +goose Up

-- Checks the rows that migrations 30 and 32 found. Commands are written meanwhile.

alter table commands
    validate constraint commands_action_known,
    validate constraint commands_lane_known,
    validate constraint commands_lane_fits,
    validate constraint commands_parameters_fit,
    validate constraint commands_actor_role_known,
    validate constraint commands_state_known,
    validate constraint commands_completed_when_settled,
    validate constraint commands_attempts_positive,
    validate constraint commands_deadline_follows,
    validate constraint commands_vehicle_exists;
