-- +goose Up

-- What an agency has set for the rules of alerts, by rule (alerts.Setting); without a row: the defaults.
create table alert_rules (
    agency_id bigint constraint alert_rules_pkey primary key constraint alert_rules_agency_exists references agencies,
    settings  jsonb not null constraint alert_rules_settings_list check (jsonb_typeof(settings) = 'array')
);

-- Alerts, and conditions that have not held for their time yet (opened_at is null): a restart resets neither. Without foreign
-- keys, which would lock the vehicle: an alert must not wait for transactions that change it.
create sequence alerts_no as bigint cache 1;
create table alerts (
    id         uuid constraint alerts_pkey primary key default gen_random_uuid(),
    no         bigint, -- ascending in the order in which they opened
    rule       text not null constraint alerts_rule_form check (rule ~ '^[a-z0-9_]{1,64}$'),
    severity   text not null constraint alerts_severity_known check (severity in ('info', 'warning', 'critical')),
    agency_id  bigint, -- null: of no agency alone
    vehicle_id bigint,
    person     text not null default '', -- the subject of a token
    booking_id bigint,
    command_id uuid,
    facts      jsonb not null default '{}' constraint alerts_facts_object check (jsonb_typeof(facts) = 'object'),
    since      timestamptz not null,
    worse_at   timestamptz, -- since when a higher severity has held
    opened_at  timestamptz,
    cleared_at timestamptz,
    seen_by    text,
    seen_at    timestamptz,
    seen_note  text,
    constraint alerts_of_vehicle_or_person check ((vehicle_id is null) = (person <> '')),
    constraint alerts_number_when_opened check ((no is null) = (opened_at is null)),
    constraint alerts_opened_first check (opened_at is not null or cleared_at is null and seen_at is null),
    constraint alerts_seen_by_a_person check (num_nulls(seen_by, seen_at, seen_note) in (0, 3))
) with (fillfactor = 80);
alter sequence alerts_no owned by alerts.no;

-- Decides, whatever instances do: one that is open, of a rule and a vehicle or person.
create unique index alerts_one_open on alerts (rule, coalesce(vehicle_id, 0), person) where cleared_at is null;
create unique index alerts_by_number on alerts (no) where no is not null;
create index alerts_open on alerts (no) where no is not null and cleared_at is null;
create index alerts_agency on alerts (agency_id, no) where no is not null;
create index alerts_vehicle on alerts (vehicle_id, no) where no is not null;
create index alerts_cleared on alerts (cleared_at) where cleared_at is not null;

-- What rules read of a vehicle: values of its snapshot, extracted when that has changed, and where it was parked. Null: unknown.
create table alert_inputs (
    vehicle_id       bigint constraint alert_inputs_pkey primary key,
    snapshot_at      timestamptz not null, -- the version of the snapshot
    ignition         boolean,
    charging         boolean,
    volts            real,
    energy           real, -- percent
    locked           boolean,
    opened           text[] not null, -- doors and windows
    codes            text[] not null,
    lamps            text[] not null,
    service_km       real,
    latitude         double precision,
    longitude        double precision,
    located_at       timestamptz, -- times of the vehicle's clock
    parked_at        timestamptz, -- since then its ignition is off
    parked_latitude  double precision,
    parked_longitude double precision,
    outside          boolean, -- it is in no area in which rentals end, although its agency has some
    forbidden        text     -- the area without parking that it is in
) with (fillfactor = 70);

-- Roles that write the reported state write these, too.
-- +goose StatementBegin
do $$
declare
    role record;
begin
    for role in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'snapshots'::regclass and privilege_type = 'UPDATE' and grantee <> c.relowner
    loop
        execute 'grant select, insert, update, delete on alerts, alert_rules, alert_inputs to ' || role.name;
        execute 'grant usage on sequence alerts_no to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
