-- +goose Up

-- Commands that were settled a day ago, in partitions by month. commands itself cannot be partitioned: its keys, the index of open
-- lanes and the idempotency keys that refer to it hold for the whole table. The partitions are by id, which begins with its time
-- (UUID version 7): so the id alone is the key, and a command is found by it in one partition.
--
-- There is no foreign key to vehicles: each row was checked in commands, and a check would lock the vehicle once more.
create table settled_commands (
    id              uuid not null constraint settled_commands_pkey primary key,
    vehicle_id      bigint not null,
    agency_id       bigint not null,
    unit            text not null,
    action          text not null,
    parameters      jsonb,
    lane            text not null,
    seq             bigint not null,
    instance        text not null,
    actor_subject   text not null,
    actor_role      text not null,
    actor_agency_id bigint,
    request_id      uuid,
    state           text not null constraint settled_commands_settled
                    check (state in ('succeeded', 'rejected', 'failed', 'expired', 'unknown')),
    reason          text not null,
    detail          text not null,
    reported        json,
    late            boolean not null,
    overruled       boolean not null,
    attempts        integer not null,
    requested_at    timestamptz not null,
    sent_at         timestamptz,
    received_at     timestamptz,
    completed_at    timestamptz not null,
    deadline        timestamptz not null,
    bulk_id         uuid,
    booking_id      bigint
) partition by range (id);

create index settled_commands_vehicle on settled_commands (vehicle_id, seq desc);
create index settled_commands_bulk on settled_commands (bulk_id) where bulk_id is not null;

-- For ids that are not of version 7. The service makes none.
create table settled_commands_other partition of settled_commands default;

-- Up to when a history was removed: what is older and not on record was not lost.
create table history_pruned (
    history text constraint history_pruned_pkey primary key,
    before  timestamptz not null
);

-- The least id of an instant, and the instant of an id.
-- +goose StatementBegin
create function command_id_at(instant timestamptz) returns uuid language sql stable as $$
    select (lpad(to_hex(floor(extract(epoch from instant) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

create function command_id_time(id uuid) returns timestamptz language sql stable as $$
    select to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
$$;

-- Adds the partition of a month (its first instant, in UTC) where there is none. To attach it locks out neither readers nor writers of
-- the others.
create function add_settled_commands_partition(month timestamp) returns void language plpgsql as $$
declare
    name text := 'settled_commands_' || to_char(month, 'YYYY_MM');
begin
    if to_regclass(name) is not null then
        return;
    end if;
    perform pg_advisory_xact_lock(hashtext('settled_commands'));
    -- By a query: to_regclass may have cached, before it waited, that there is none.
    if exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'settled_commands'::regclass and c.relname = name) then
        return;
    end if;
    execute format('create table %I (like settled_commands including all)', name);
    execute format('alter table settled_commands attach partition %I for values from (%L) to (%L)', name,
        command_id_at(month at time zone 'UTC'), command_id_at((month + interval '1 month') at time zone 'UTC'));
end
$$;

-- Moves up to so many commands that are older than an age, and settled, out of commands, and returns how many. Those that an idempotency
-- key refers to stay. Any number of instances may call it concurrently; it waits for no other statement. It runs as its
-- owner: the service's role may remove nothing.
create function move_settled_commands(age interval, batch integer) returns integer language plpgsql security definer as $$
declare
    oldest uuid := command_id_at(clock_timestamp() - age);
    picked uuid[];
    month timestamp;
    moved integer;
begin
    picked := array(
        select id from commands c
        where id < oldest and state not in ('accepted', 'sent', 'received')
            and not exists (select from idempotency_keys k where k.command_id = c.id)
        order by id limit batch
        for update of c skip locked);
    for month in
        select distinct date_trunc('month', command_id_time(id) at time zone 'UTC')
        from unnest(picked) as p (id) where substr(id::text, 15, 1) = '7'
    loop
        perform add_settled_commands_partition(month);
    end loop;
    with gone as (
        delete from commands where id = any (picked) returning *
    )
    insert into settled_commands (id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id)
    select id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id
    from gone order by id;
    get diagnostics moved = row_count;
    return moved;
end
$$;

-- Moves commands back whose state an answer may still change, for the transaction that settles them.
create function return_settled_commands(wanted uuid[]) returns integer language plpgsql security definer as $$
declare
    returned integer;
begin
    with gone as (
        delete from settled_commands where id = any (wanted) and state in ('unknown', 'expired', 'rejected') returning *
    )
    insert into commands (id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id)
    select id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id
    from gone order by id;
    get diagnostics returned = row_count;
    return returned;
end
$$;

-- Whether a command is on record, or was until it was pruned.
create function command_on_record(wanted uuid) returns boolean language sql stable as $$
    select exists (select from commands where id = wanted)
        or exists (select from settled_commands where id = wanted)
        or exists (select from history_pruned where history = 'commands' and wanted < command_id_at(before))
$$;

-- Units repeat their last eight results in each report. The previous version does not find those that were moved, and would write each
-- down as lost.
create function unrecorded_answers_skip_recorded() returns trigger language plpgsql as $$
begin
    if command_on_record(new.command_id) then
        return null;
    end if;
    return new;
end
$$;
-- +goose StatementEnd

create trigger unrecorded_answers_skip_recorded before insert on unrecorded_answers
    for each row execute function unrecorded_answers_skip_recorded();

-- Functions that run as their owner look for tables here alone.
-- +goose StatementBegin
do $$
begin
    execute format('alter function move_settled_commands(interval, integer) set search_path = %I, pg_temp', current_schema());
    execute format('alter function return_settled_commands(uuid[]) set search_path = %I, pg_temp', current_schema());
end
$$;
-- +goose StatementEnd

-- Roles that may read commands may read these.
-- +goose StatementBegin
do $$
declare
    reader text;
begin
    for reader in
        select distinct case acl.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(acl.grantee)) end
        from pg_class c, aclexplode(c.relacl) as acl
        where c.oid = 'commands'::regclass and acl.privilege_type = 'SELECT' and acl.grantee <> c.relowner
    loop
        execute 'grant select on settled_commands, history_pruned to ' || reader;
    end loop;
end
$$;
-- +goose StatementEnd
