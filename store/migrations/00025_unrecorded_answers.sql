-- +goose Up

-- Final answers of units to commands that no row of commands knows: what a failover to a standby that was behind, or a restore, has lost.
-- Each is written once, with its line of the history. Bounded: see telematics.MaxUnrecorded.
create table unrecorded_answers (
    unit        text not null,
    command_id  uuid not null,
    vehicle_id  bigint not null,
    agency_id   bigint not null,
    state       text not null,
    reason      text not null,
    detail      text not null,
    answered_at timestamptz,          -- by the unit's clock; null: it makes no sense
    received_at timestamptz not null, -- by the instance's
    noted_at    timestamptz not null default clock_timestamp(),
    constraint unrecorded_answers_pkey primary key (unit, command_id)
);

create index unrecorded_answers_noted on unrecorded_answers (unit, noted_at);
