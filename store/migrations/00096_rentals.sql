-- +goose Up

-- What vehicles of a category cost at an agency. A version is never changed: a booking names the one by which it was made.
create table tariffs (
    agency_id  bigint not null constraint tariffs_agency_exists references agencies,
    category   text not null, -- of vehicles; empty: of those whose category has no tariff
    version    integer not null constraint tariffs_version_positive check (version > 0),
    tariff     jsonb, -- null: since then the category has none
    currency   text not null, -- the agency's when it was made: in another one it does not count
    created_at timestamptz not null default now(),
    created_by text not null default '',
    constraint tariffs_pkey primary key (agency_id, category, version)
);

-- An agency's rules for rentals that clients start and end themselves (rental.Rules); without a row: the defaults.
create table rental_rules (
    agency_id bigint constraint rental_rules_pkey primary key constraint rental_rules_agency_exists references agencies,
    rules     jsonb not null
);

-- Areas of an agency, as GeoJSON geometries. Each change has another version, by which instances notice it.
create table areas (
    agency_id  bigint not null constraint areas_agency_exists references agencies,
    name       text not null constraint areas_name_form check (name ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
    kind       text not null constraint areas_kind_known check (kind in ('operating', 'no_parking', 'end_only')),
    geometry   jsonb not null,
    version    uuid not null default gen_random_uuid(),
    changed_at timestamptz not null default now(),
    constraint areas_pkey primary key (agency_id, name)
);

-- Prices that a client was offered.
create table quotes (
    id         uuid constraint quotes_pkey primary key,
    agency_id  bigint not null constraint quotes_agency_exists references agencies,
    subject    text not null,
    quote      jsonb not null,
    expires_at timestamptz not null
);
create index quotes_expiry on quotes (expires_at);

-- What a rental by a tariff needs to know: the tariff; since when it is paused, and for how long it was; the odometer at
-- start and end; until when a reservation without a fixed start is kept.
alter table bookings
    add column tariff         jsonb, -- null: hourly_rate alone
    add column paused_at      timestamptz,
    add column paused_ms      bigint not null default 0,
    add column start_metres   bigint,
    add column end_metres     bigint,
    add column reserved_until timestamptz;

-- Each start, pause, resumption and end of a rental. The row is the job that carries it out: due at due_at.
create table transitions (
    id           uuid constraint transitions_pkey primary key,
    booking_id   bigint not null constraint transitions_booking_exists references bookings,
    kind         text not null constraint transitions_kind_known check (kind in ('start', 'pause', 'resume', 'end')),
    state        text not null constraint transitions_state_known check (state in ('open', 'done', 'failed')),
    step         text not null,
    requested_at timestamptz not null,
    requested_by jsonb not null, -- the actor
    content      jsonb not null, -- what the steps know
    due_at       timestamptz, -- null: nothing is to be done
    lease        uuid,
    lease_until  timestamptz,
    needs_staff  boolean not null default false,
    ended_at     timestamptz,
    constraint transitions_end_when_not_open check ((ended_at is null) = (state = 'open')),
    constraint transitions_due_when_open check (due_at is null or state = 'open')
) with (fillfactor = 80);
create unique index transitions_one_open on transitions (booking_id) where state = 'open';
create index transitions_booking on transitions (booking_id, requested_at desc);
create index transitions_due on transitions (due_at) where due_at is not null;

-- The transition of the booking that a repeated request has begun or joined. No foreign key: transitions are never removed.
alter table idempotency_keys add column transition_id uuid;

-- Where each vehicle is, in bands of 1/50 of a degree from south to north: so that those near a place are found by an
-- index, which reports do not change in snapshots. Each snapshot with another position writes it, whatever stores it.
create table positions (
    vehicle_id bigint constraint positions_pkey primary key constraint positions_vehicle_exists references vehicles,
    latitude   double precision not null,
    longitude  double precision not null,
    band       smallint not null generated always as (floor(latitude * 50)::smallint) stored
) with (fillfactor = 70);
create index positions_band on positions (band, longitude);

-- A position that is none, or not on the Earth, is left out.
-- +goose StatementBegin
create function snapshots_note_position() returns trigger language plpgsql as $$
declare
    north jsonb := new.fields -> 'location.latitude' -> 'v';
    east  jsonb := new.fields -> 'location.longitude' -> 'v';
begin
    if jsonb_typeof(north) = 'number' and jsonb_typeof(east) = 'number'
        and north between '-90' and '90' and east between '-180' and '180' then
        insert into positions (vehicle_id, latitude, longitude) values (new.vehicle_id, north::float8, east::float8)
        on conflict (vehicle_id) do update set latitude = excluded.latitude, longitude = excluded.longitude;
    end if;
    return null;
end
$$;
-- +goose StatementEnd
create trigger snapshots_note_first_position after insert on snapshots
    for each row execute function snapshots_note_position();
create trigger snapshots_note_position after update of fields on snapshots for each row
    when (old.fields -> 'location.latitude' -> 'v' is distinct from new.fields -> 'location.latitude' -> 'v'
        or old.fields -> 'location.longitude' -> 'v' is distinct from new.fields -> 'location.longitude' -> 'v')
    execute function snapshots_note_position();

-- A rental that a client starts is charged before its vehicle opens, and the charges are taken back where it does not:
-- so a start has a goal as a deposit has (and an extension that was not paid when its rental ended), and may be charged again. The end of a rental charges what it cost in addition.
alter table charges drop constraint charges_kind_known;
alter table charges add constraint charges_kind_known
    check (kind in ('start', 'deposit', 'extension', 'fee', 'refund', 'end')) not valid;
alter table charges drop constraint charges_goal_of_deposits;
alter table charges add constraint charges_goal_of_deposits
    check ((goal is not null) = (kind = 'deposit') or kind in ('start', 'extension') and goal = 'release') not valid;
alter table charges drop constraint charges_start_once;

-- Roles that write payment methods (those of instances) write these, too.
-- +goose StatementBegin
do $$
declare
    role record;
begin
    for role in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'payment_methods'::regclass and privilege_type = 'UPDATE' and grantee <> c.relowner
    loop
        execute 'grant select, insert on tariffs to ' || role.name;
        execute 'grant select, insert, update on rental_rules, transitions, positions to ' || role.name;
        execute 'grant select, insert, update, delete on areas, quotes to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
