-- +goose Up

-- What a command can be, as migrations 3 and 18 had it. Not as enum types: to change the type of a column writes its table
-- and its indexes anew under a lock that blocks all statements, and connections of the previous version could not use their
-- prepared statements any more. Rows that are there already are checked by migration 33, which blocks no statement.

alter table commands
    add constraint commands_action_known
        check (action in ('lock', 'unlock', 'enable-driving', 'disable-driving',
            'unlock-and-enable-driving', 'lock-and-disable-driving', 'attention', 'open-top-case', 'report-state')) not valid,
    add constraint commands_lane_known check (lane in ('access', 'attention', 'top_case', 'refresh')) not valid,
    add constraint commands_lane_fits
        check ((lane = 'attention') = (action = 'attention') and (lane = 'top_case') = (action = 'open-top-case')
            and (lane = 'refresh') = (action = 'report-state')) not valid,
    add constraint commands_parameters_fit check ((action = 'attention') = (parameters is not null)) not valid,
    add constraint commands_actor_role_known check (actor_role in ('admin', 'client', 'system')) not valid,
    add constraint commands_state_known
        check (state in ('accepted', 'sent', 'received', 'succeeded', 'rejected', 'failed', 'expired', 'unknown')) not valid,
    add constraint commands_completed_when_settled
        check ((completed_at is null) = (state in ('accepted', 'sent', 'received'))) not valid,
    add constraint commands_attempts_positive check (attempts >= 0) not valid,
    add constraint commands_deadline_follows check (deadline >= requested_at) not valid;
