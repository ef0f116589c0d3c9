-- +goose Up

-- Commands that an operator keeps from leaving: of an agency, or (0) of everybody.
create table halts (
    agency_id bigint constraint halts_pkey primary key,
    why       text not null constraint halts_why_said check (why <> ''),
    by        text not null,
    since     timestamptz not null default clock_timestamp()
);

-- A person's words, where an activity has any.
alter table activity add column note text not null default '';
