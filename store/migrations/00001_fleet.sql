-- +goose Up

-- Who owns what, and which telematics unit is built into which vehicle. Ids come
-- from outside (motorpool import), so nothing counts here.

create table agencies (
    id   bigint constraint agencies_pkey primary key constraint agencies_id_positive check (id > 0),
    code text not null constraint agencies_code_unique unique,
    name text not null
);

create table stations (
    id        bigint constraint stations_pkey primary key constraint stations_id_positive check (id > 0),
    agency_id bigint not null constraint stations_agency_exists references agencies,
    name      text not null,
    address   text not null,
    latitude  double precision not null constraint stations_latitude_range check (latitude between -90 and 90),
    longitude double precision not null constraint stations_longitude_range check (longitude between -180 and 180)
);

create index stations_agency on stations (agency_id);

create table vehicles (
    id           bigint constraint vehicles_pkey primary key constraint vehicles_id_positive check (id > 0),
    agency_id    bigint not null constraint vehicles_agency_exists references agencies,
    status       text not null constraint vehicles_status_known
                 check (status in ('available', 'booked', 'in_use', 'maintenance', 'inactive')),
    powertrain   text not null constraint vehicles_powertrain_known
                 check (powertrain in ('combustion', 'electric', 'plug_in_hybrid')),
    plate_number text not null,
    brand        text not null,
    model        text not null,
    year         integer not null,
    color        text not null,
    category     text not null,
    image        text not null,
    features     text[] not null,
    capabilities text[] not null constraint vehicles_capabilities_known
                 check (capabilities <@ array ['lock', 'unlock', 'enable-driving', 'disable-driving',
                     'unlock-and-enable-driving', 'lock-and-disable-driving', 'attention', 'open-top-case'])
);

create index vehicles_agency on vehicles (agency_id, id desc);

-- What a unit says of its connection changes with every message: room on each page
-- keeps those updates off the indexes.
create table units (
    serial     text constraint units_pkey primary key constraint units_serial_form check (serial ~ '^[A-Za-z0-9_-]{1,64}$'),
    vehicle_id bigint constraint units_vehicle_exists references vehicles constraint units_one_per_vehicle unique,
    status     text constraint units_status_known check (status in ('online', 'standby', 'offline')),
    session    text not null default '',
    said_at    timestamptz,
    changed_at timestamptz,
    last_seen  timestamptz,
    actions    text[],
    firmware   text not null default ''
) with (fillfactor = 60);
