-- +goose Up

-- The latest known state of a vehicle. fields maps a field to its value and the
-- vehicle time, in milliseconds, at which it was reported:
-- {"telemetry.speed_kmh": {"v": 48.5, "at": 1767348000000}}

create table snapshots (
    vehicle_id bigint constraint snapshots_pkey primary key constraint snapshots_vehicle_exists references vehicles,
    fields     jsonb not null constraint snapshots_fields_object check (jsonb_typeof(fields) = 'object'),
    updated_at timestamptz not null default now()
) with (fillfactor = 60);
