-- +goose Up

-- An agency's terms for bookings, and what a vehicle costs. A vehicle without a rate
-- cannot be booked. Amounts are in minor units of the agency's currency.
alter table agencies
    add column currency      text not null default 'EUR' constraint agencies_currency_form check (currency ~ '^[A-Z]{3}$'),
    add column tax_ppm       bigint not null default 0 constraint agencies_tax_share check (tax_ppm between 0 and 1000000),
    add column cancel_cutoff interval not null default '0' constraint agencies_cancel_cutoff_positive check (cancel_cutoff >= '0'),
    add column buffer        interval not null default '0' constraint agencies_buffer_positive check (buffer >= '0');

alter table vehicles
    add column hourly_rate bigint constraint vehicles_hourly_rate_range check (hourly_rate between 0 and 1000000000000),
    add column deposit     bigint not null default 0 constraint vehicles_deposit_range check (deposit between 0 and 1000000000000);

-- A client is (agency, subject of its token).
create table clients (
    id                        bigint generated always as identity constraint clients_pkey primary key,
    agency_id                 bigint not null constraint clients_agency_exists references agencies,
    subject                   text not null,
    customer                  text constraint clients_customer_unique unique, -- the processor's id; null: it knows nothing of the client
    customer_key              uuid not null default gen_random_uuid(), -- under which the customer is made there, once
    default_payment_method_id bigint,
    created_at                timestamptz not null default clock_timestamp(),
    constraint clients_subject_unique unique (agency_id, subject)
);

-- What a processor tells of a card: its own token, and what may be shown.
create table payment_methods (
    id          bigint generated always as identity constraint payment_methods_pkey primary key,
    client_id   bigint not null constraint payment_methods_client_exists references clients,
    token       text not null constraint payment_methods_token_unique unique,
    brand       text not null,
    last_four   text not null constraint payment_methods_last_four_form check (last_four ~ '^[0-9]{4}$'),
    exp_month   integer not null constraint payment_methods_exp_month_range check (exp_month between 1 and 12),
    exp_year    integer not null constraint payment_methods_exp_year_range check (exp_year between 2000 and 9999),
    fingerprint text, -- null: the processor told none
    created_at  timestamptz not null,
    constraint payment_methods_of_client unique (client_id, id),
    constraint payment_methods_card_once unique (client_id, fingerprint)
);

-- The default is one of the client's own methods, and cannot be removed while it is the default.
alter table clients add constraint clients_default_is_own
    foreign key (id, default_payment_method_id) references payment_methods (client_id, id) deferrable initially immediate;

-- Whoever has a payment method has a default: exactly one, by the column. The client's row is locked,
-- so that neither of two transactions at once misses what the other does.
-- +goose StatementBegin
create function clients_default_is_there() returns trigger language plpgsql as $$
declare
    client  bigint := case tg_table_name when 'clients' then (to_jsonb(new) ->> 'id')::bigint
                                         else (to_jsonb(new) ->> 'client_id')::bigint end;
    default_method bigint;
begin
    select default_payment_method_id into default_method from clients where id = client for share;
    if default_method is null and exists (select from payment_methods where client_id = client) then
        raise exception 'client % has payment methods and no default', client
            using errcode = 'check_violation', constraint = 'clients_default_is_there';
    end if;
    return null;
end
$$;
-- +goose StatementEnd

create constraint trigger payment_methods_default_is_there after insert or update of client_id on payment_methods
    deferrable initially deferred for each row execute function clients_default_is_there();
create constraint trigger clients_default_is_there after update of default_payment_method_id on clients
    deferrable initially deferred for each row execute function clients_default_is_there();

-- The last booking of each year, for references.
create table booking_numbers (
    year integer constraint booking_numbers_pkey primary key,
    last bigint not null constraint booking_numbers_positive check (last > 0)
);

-- A booking keeps the price that it was made at.
create table bookings (
    id                 bigint generated always as identity constraint bookings_pkey primary key,
    reference          text not null constraint bookings_reference_unique unique,
    state              text not null constraint bookings_state_known check (state in ('upcoming', 'active', 'completed', 'cancelled')),
    agency_id          bigint not null constraint bookings_agency_exists references agencies,
    client_id          bigint not null constraint bookings_client_exists references clients,
    vehicle_id         bigint not null constraint bookings_vehicle_exists references vehicles,
    pickup_station_id  bigint not null constraint bookings_pickup_exists references stations,
    dropoff_station_id bigint not null constraint bookings_dropoff_exists references stations,
    start_at           timestamptz not null,
    end_at             timestamptz not null,
    started_at         timestamptz,
    ended_at           timestamptz,
    currency           text not null,
    hourly_rate        bigint not null constraint bookings_hourly_rate_positive check (hourly_rate >= 0),
    tax_ppm            bigint not null,
    hours              bigint not null, -- hundredths
    subtotal           bigint not null constraint bookings_subtotal_positive check (subtotal >= 0),
    tax                bigint not null constraint bookings_tax_positive check (tax >= 0),
    deposit            bigint not null constraint bookings_deposit_positive check (deposit >= 0),
    payment_method_id  bigint constraint bookings_payment_method_exists references payment_methods on delete set null,
    extensions         integer not null default 0 constraint bookings_extensions_few check (extensions between 0 and 3),
    created_at         timestamptz not null,
    constraint bookings_end_follows check (end_at > start_at),
    constraint bookings_started_when_active check ((started_at is null) = (state in ('upcoming', 'cancelled'))),
    constraint bookings_ended_when_completed check ((ended_at is null) = (state <> 'completed')),
    -- No two live bookings of a vehicle overlap; one that began early claims the vehicle from then on. Ranges of ids,
    -- because equality needs an extension there.
    constraint bookings_no_overlap exclude using gist (
        int8range(vehicle_id, vehicle_id, '[]') with &&, tstzrange(least(start_at, started_at), end_at) with &&)
        where (state in ('upcoming', 'active'))
);

create unique index bookings_one_active on bookings (vehicle_id) where state = 'active';
create index bookings_client on bookings (client_id, id desc);
create index bookings_agency on bookings (agency_id, id desc);
create index bookings_vehicle on bookings (vehicle_id, id desc);
create index bookings_vehicle_live on bookings (vehicle_id, start_at) where state in ('upcoming', 'active');
create index bookings_method on bookings (payment_method_id) where payment_method_id is not null;

-- A charge is written with the change that causes it. The row is the job: due at
-- next_attempt_at, and leased while somebody is at it.
create table charges (
    id                uuid constraint charges_pkey primary key,
    booking_id        bigint not null constraint charges_booking_exists references bookings,
    kind              text not null constraint charges_kind_known check (kind in ('start', 'deposit', 'extension', 'fee', 'refund')),
    number            integer not null constraint charges_number_positive check (number > 0),
    state             text not null constraint charges_state_known
                      check (state in ('pending', 'unknown', 'requires_action', 'declined', 'failed', 'authorized', 'paid', 'captured', 'released')),
    currency          text not null,
    amount            bigint not null constraint charges_amount_range check (amount between 0 and 1000000000000),
    settled           bigint not null default 0 constraint charges_settled_positive check (settled >= 0),
    goal              text constraint charges_goal_known check (goal in ('hold', 'capture', 'release')),
    capture_amount    bigint not null default 0 constraint charges_capture_within check (capture_amount between 0 and amount),
    refunds_charge_id uuid constraint charges_refunds_exists references charges,
    fee               text not null default '',
    reason            text not null default '',
    payment_method_id bigint constraint charges_payment_method_exists references payment_methods on delete set null,
    brand             text not null default '',
    last_four         text not null default '',
    intent            text constraint charges_intent_unique unique, -- the processor's id
    seen              text not null default '', -- the processor's id of the last attempt whose outcome is here
    attempts          integer not null default 0,
    declines          integer not null default 0,
    decline_code      text not null default '',
    hard              boolean not null default false, -- the last decline: that card must not be tried again
    barred            text[] not null default '{}', -- cards that must not be tried again, by fingerprint or token
    next_attempt_at   timestamptz, -- null: nothing is to be done
    look_at           timestamptz, -- the processor told of it: it is to be looked at, whatever is to be done when
    due_at            timestamptz generated always as (least(next_attempt_at, look_at)) stored,
    tries             integer not null default 0, -- in a row that brought no news
    tried             text not null default '', -- fingerprint, else token, of the card of the last attempt
    tried_default     bigint, -- the client's default when that card was chosen; may be removed meanwhile
    woken_at          timestamptz, -- something happened since the charge was last taken: it is due at once
    lease             uuid,
    lease_until       timestamptz,
    taken_at          timestamptz, -- since when what is learned is news
    paid_at           timestamptz,
    created_at        timestamptz not null,
    constraint charges_once unique (booking_id, kind, number),
    constraint charges_goal_of_deposits check ((goal is not null) = (kind = 'deposit')),
    constraint charges_refunds_of_refunds check ((refunds_charge_id is not null) = (kind = 'refund')),
    constraint charges_start_once check (kind not in ('start', 'deposit') or number = 1)
) with (fillfactor = 80);

create index charges_due on charges (due_at) where due_at is not null;
create index charges_refunds on charges (refunds_charge_id) where refunds_charge_id is not null;
create index charges_method on charges (payment_method_id) where payment_method_id is not null;

-- What the processor told, once each.
create table processor_notices (
    id          text constraint processor_notices_pkey primary key,
    type        text not null,
    object      text not null,
    kind        text not null,
    live        boolean not null,
    received_at timestamptz not null default clock_timestamp(),
    attempts    integer not null default 0,
    due_at      timestamptz default clock_timestamp() -- null: handled
);

create index processor_notices_due on processor_notices (due_at) where due_at is not null;
create index processor_notices_received on processor_notices (received_at);

-- Secrets that agencies' apps sign with, sealed with the installation's key.
create table agency_keys (
    id         text constraint agency_keys_pkey primary key constraint agency_keys_id_form check (id ~ '^[A-Za-z0-9_-]{1,64}$'),
    agency_id  bigint not null constraint agency_keys_agency_exists references agencies,
    sealed     bytea not null,
    state      text not null default 'active' constraint agency_keys_state_known check (state in ('active', 'retiring', 'revoked')),
    retires_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    constraint agency_keys_retires_when_retiring check (state <> 'retiring' or retires_at is not null)
);

create index agency_keys_agency on agency_keys (agency_id);

-- What else a repeated request can name. What was declined is kept as the decline.
alter table idempotency_keys
    add column booking_id        bigint constraint idempotency_keys_booking_exists references bookings,
    add column payment_method_id bigint, -- may be removed meanwhile
    add column refusal           jsonb,
    drop constraint idempotency_keys_name_one_thing,
    add constraint idempotency_keys_name_one_thing
        check (num_nonnulls(command_id, bulk_id, booking_id, payment_method_id, refusal) = 1);

-- The booking whose client ordered a command. No foreign key: a claim must not wait for whoever changes the booking.
alter table commands add column booking_id bigint;

-- The history tells of bookings too, and of what was asked for.
alter table activity add column booking_id bigint;
create index activity_booking on activity (booking_id, id desc) where booking_id is not null;
