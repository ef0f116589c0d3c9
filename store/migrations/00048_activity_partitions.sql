-- +goose Up

-- Makes a table that can become a partition of the audit log. Its indexes are for the filters of the API: those of one column hold equal
-- values once, some 7 bytes an entry. An agency reads its own entries alone, newest first, so that index has the order, too.
-- +goose StatementBegin
create function create_activity_table(name text) returns void language plpgsql as $$
declare
    other record;
begin
    execute format('create table %I (like activity including defaults including constraints)', name);
    execute format('alter table %I add primary key (id) with (fillfactor = 100)', name);
    execute format('create index on %I (agency_id, id)', name);
    execute format('create index on %I (vehicle_id) where vehicle_id is not null', name);
    execute format('create index on %I (booking_id) where booking_id is not null', name);
    execute format('create index on %I (actor_subject)', name);
    execute format('create index on %I (action)', name);
    execute format('create index on %I (outcome) where outcome <> ''executed''', name);
    execute format('create index on %I using brin (at) with (autosummarize = on)', name);
    execute format('create trigger activity_append_only before update or delete or truncate on %I
        for each statement execute function activity_refuse_change()', name);
    -- Others read and add through the whole. Default privileges may have given them more.
    for other in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = name::regclass and grantee <> c.relowner
    loop
        execute format('revoke all on %I from %s', create_activity_table.name, other.name);
    end loop;
end
$$;

-- Adds the partitions of this month (in UTC) and of the next ones, where they are missing, and returns their names. It locks out neither
-- who reads nor who adds, and gives up where the default partition is being read for longer. A month of which entries are in the default
-- partition stays there. Instances call it, so it runs as its owner.
create function add_activity_partitions(ahead integer) returns setof text language plpgsql security definer as $$
declare
    month timestamp;
    covered timestamp; -- until then the first partition has all
    name text;
begin
    perform pg_advisory_xact_lock(hashtext('add_activity_partitions'));
    select max(to_timestamp(right(relname, 7), 'YYYY_MM')::timestamp + interval '1 month') into covered
    from pg_inherits join pg_class on oid = inhrelid
    where inhparent = 'activity'::regclass and relname ~ '^activity_to_\d{4}_\d{2}$';
    for month in
        select date_trunc('month', now() at time zone 'UTC') + n * interval '1 month' from generate_series(0, least(ahead, 24)) as n
    loop
        name := 'activity_' || to_char(month, 'YYYY_MM');
        continue when to_regclass(name) is not null or month < covered or exists (
            select from activity_default
            where at >= month at time zone 'UTC' and at < (month + interval '1 month') at time zone 'UTC');
        perform create_activity_table(name);
        execute format('alter table activity attach partition %I for values from (%L) to (%L)', name,
            month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC');
        return next name;
    end loop;
end
$$;

do $$
begin
    execute format('alter function add_activity_partitions(integer) set search_path = %I, pg_temp', current_schema());
    execute 'alter function add_activity_partitions(integer) set lock_timeout = ''250ms''';
    execute 'alter function add_activity_partitions(integer) set timezone = ''UTC''';
end
$$;

-- The table that there is becomes the first partition, with its indexes as they are. An instance of the version before adds to the
-- whole from then on: it finds the table by its name.
do $$
declare
    next_id bigint;
    last_month timestamp; -- of the first partition
    first text;
    other record;
begin
    lock table activity in access exclusive mode;
    execute format('select last_value + is_called::integer from %s', pg_get_serial_sequence('activity', 'id')) into next_id;
    select substring(pg_get_constraintdef(oid) from '\d{4}-\d{2}-\d{2}')::timestamp - interval '1 month' into last_month
    from pg_constraint where conrelid = 'activity'::regclass and conname = 'activity_range';
    if not exists (select from activity) then
        alter table activity drop constraint activity_range;
        last_month := date_trunc('month', now() at time zone 'UTC') - interval '1 month';
    end if;
    first := 'activity_to_' || to_char(last_month, 'YYYY_MM');

    execute format('alter table activity rename to %I', first);
    execute format('alter table %I alter id drop identity', first);
    execute format($create$
        create table activity (
            id              bigint not null generated always as identity (sequence name activity_id_seq start with %s),
            at              timestamptz not null,
            actor_subject   text not null,
            actor_role      text not null constraint activity_actor_role_known check (actor_role in ('admin', 'client', 'system')),
            actor_agency_id bigint,
            agency_id       bigint,
            vehicle_id      bigint,
            action          text not null,
            parameters      jsonb,
            outcome         text not null constraint activity_outcome_known
                            check (outcome in ('', 'executed', 'not_executed', 'failed', 'unknown')),
            code            text not null,
            command_id      uuid,
            request_id      uuid,
            latency_us      bigint not null,
            late            boolean not null,
            note            text not null default '',
            booking_id      bigint
        ) partition by range (at)$create$, next_id);
    create trigger activity_append_only before update or delete or truncate on activity
        for each statement execute function activity_refuse_change();
    execute format('alter table activity attach partition %I for values from (minvalue) to (%L)', first,
        (last_month + interval '1 month') at time zone 'UTC');
    execute format('alter table %I drop constraint if exists activity_range', first);
    -- Nothing is refused because its month is missing.
    perform create_activity_table('activity_default');
    alter table activity attach partition activity_default default;
    perform add_activity_partitions(2);

    -- Who could read and add can do so, and no more: not even where default privileges say so.
    for other in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'activity'::regclass and grantee <> c.relowner
    loop
        execute format('revoke all on activity from %s', other.name);
    end loop;
    for other in
        select case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name,
            string_agg(privilege_type, ', ') filter (where privilege_type in ('SELECT', 'INSERT')) as privileges
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = first::regclass and grantee <> c.relowner
        group by 1
    loop
        execute format('revoke all on %I from %s', first, other.name);
        if other.privileges is not null then
            execute format('grant %s on activity to %s', other.privileges, other.name);
        end if;
    end loop;
end
$$;
-- +goose StatementEnd
