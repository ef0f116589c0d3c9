-- +goose Up

-- Orders to many vehicles. What they led to is in commands and in bulk_refusals.
create table bulks (
    id              uuid constraint bulks_pkey primary key,
    action          text not null,
    parameters      jsonb,
    vehicle_ids     bigint[] not null constraint bulks_vehicles_some check (cardinality(vehicle_ids) > 0),
    actor_subject   text not null,
    actor_role      text not null constraint bulks_actor_role_known check (actor_role in ('admin', 'client', 'system')),
    actor_agency_id bigint,
    request_id      uuid,
    requested_at    timestamptz not null
);

-- Vehicles of a bulk for which there is no command, and why.
create table bulk_refusals (
    bulk_id    uuid not null constraint bulk_refusals_bulk_exists references bulks,
    vehicle_id bigint not null,
    error      jsonb not null,
    constraint bulk_refusals_pkey primary key (bulk_id, vehicle_id)
);

alter table commands add column bulk_id uuid;

create index commands_bulk on commands (bulk_id) where bulk_id is not null;
