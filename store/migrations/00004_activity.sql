-- +goose Up

-- The history of who did what [LAW-9]. A refused command for a vehicle that does
-- not exist is a line too: hence no foreign key.

create table activity (
    id              bigint generated always as identity constraint activity_pkey primary key,
    at              timestamptz not null,
    actor_subject   text not null,
    actor_role      text not null constraint activity_actor_role_known check (actor_role in ('admin', 'client', 'system')),
    actor_agency_id bigint,
    agency_id       bigint,
    vehicle_id      bigint,
    action          text not null,
    parameters      jsonb,
    outcome         text not null constraint activity_outcome_known
                    check (outcome in ('', 'executed', 'not_executed', 'failed', 'unknown')),
    code            text not null,
    command_id      uuid,
    request_id      uuid,
    latency_us      bigint not null,
    late            boolean not null
);

create index activity_agency on activity (agency_id, id desc);
create index activity_vehicle on activity (vehicle_id, id desc);
create index activity_actor on activity (actor_subject, id desc);
create index activity_action on activity (action, id desc);
create index activity_at on activity (at);
-- What went wrong is rare, and asked for.
create index activity_not_executed on activity (outcome, id desc) where outcome <> 'executed';

-- +goose StatementBegin
create function activity_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'activity is append-only: % refused', lower(tg_op)
        using errcode = 'restrict_violation';
end
$$;
-- +goose StatementEnd

create trigger activity_append_only before update or delete or truncate on activity
    for each statement execute function activity_refuse_change();
