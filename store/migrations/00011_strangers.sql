-- +goose Up

-- Units that talk to us and belong to no vehicle. no grows with the first contact, and a
-- page of the list begins at one. Bounded: see telematics.MaxUnknownUnits.
create table strangers (
    serial     text constraint strangers_pkey primary key constraint strangers_serial_form check (serial ~ '^[A-Za-z0-9_-]{1,64}$'),
    no         bigint generated always as identity constraint strangers_no_unique unique,
    first_seen timestamptz not null,
    last_seen  timestamptz not null,
    messages   bigint not null constraint strangers_were_heard check (messages > 0)
) with (fillfactor = 60);

create index strangers_last_seen on strangers (last_seen);
