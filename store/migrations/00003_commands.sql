-- +goose Up

-- One sequence for all lanes, without cached numbers: what is claimed later has the
-- greater number, whichever instance claims it.
create sequence commands_seq as bigint cache 1;

-- The agency has no foreign key: each claim would lock the agency's row.
create table commands (
    id              uuid constraint commands_pkey primary key,
    vehicle_id      bigint not null constraint commands_vehicle_exists references vehicles,
    agency_id       bigint not null,
    unit            text not null,
    action          text not null constraint commands_action_known
                    check (action in ('lock', 'unlock', 'enable-driving', 'disable-driving',
                        'unlock-and-enable-driving', 'lock-and-disable-driving', 'attention', 'open-top-case', 'report-state')),
    parameters      jsonb,
    lane            text not null constraint commands_lane_known
                    check (lane in ('access', 'attention', 'top_case', 'refresh')),
    seq             bigint not null default nextval('commands_seq') constraint commands_seq_unique unique,
    instance        text not null,
    actor_subject   text not null,
    actor_role      text not null constraint commands_actor_role_known check (actor_role in ('admin', 'client', 'system')),
    actor_agency_id bigint,
    request_id      uuid,
    state           text not null default 'accepted' constraint commands_state_known
                    check (state in ('accepted', 'sent', 'received', 'succeeded', 'rejected', 'failed', 'expired', 'unknown')),
    reason          text not null default '',
    detail          text not null default '',
    reported        json, -- as it was said: jsonb writes 1e300 with all its digits
    late            boolean not null default false,
    attempts        integer not null default 0 constraint commands_attempts_positive check (attempts >= 0),
    requested_at    timestamptz not null,
    sent_at         timestamptz,
    received_at     timestamptz,
    completed_at    timestamptz,
    deadline        timestamptz not null,
    constraint commands_deadline_follows check (deadline >= requested_at),
    constraint commands_lane_fits check (
        (lane = 'attention') = (action = 'attention') and (lane = 'top_case') = (action = 'open-top-case')
        and (lane = 'refresh') = (action = 'report-state')),
    constraint commands_parameters_fit check ((action = 'attention') = (parameters is not null)),
    constraint commands_completed_when_settled
        check ((completed_at is null) = (state in ('accepted', 'sent', 'received')))
) with (fillfactor = 80);

alter sequence commands_seq owned by commands.seq;

-- One open command per vehicle and lane [LAW-5].
create unique index commands_open_lane on commands (vehicle_id, lane)
    where state in ('accepted', 'sent', 'received');

-- For the sweeper.
create index commands_open_deadline on commands (deadline)
    where state in ('accepted', 'sent', 'received');

create index commands_vehicle on commands (vehicle_id, seq desc);
