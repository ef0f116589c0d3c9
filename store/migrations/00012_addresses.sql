-- +goose Up

-- What a geocoder said of places where vehicles stood. They name no vehicle.
create table addresses (
    id        bigint generated always as identity constraint addresses_pkey primary key,
    latitude  double precision not null constraint addresses_latitude_range check (latitude between -90 and 90),
    longitude double precision not null constraint addresses_longitude_range check (longitude between -180 and 180),
    address   text constraint addresses_address_said check (address <> ''), -- null: there is none
    asked_at  timestamptz not null default clock_timestamp()
);

-- Whose turn it is to ask the geocoder: one instance's at a time.
create table geocoder_turn (
    id       integer default 1 constraint geocoder_turn_pkey primary key constraint geocoder_turn_one check (id = 1),
    holder   uuid,
    free_at  timestamptz not null default '-infinity',
    failures integer not null default 0 constraint geocoder_turn_failures_positive check (failures >= 0)
);

insert into geocoder_turn default values;
