-- +goose Up

-- Samples of what vehicles reported, in partitions by day (in UTC), which are dropped when they are older than --telemetry-retention. A
-- sample is of an interval, and has the first value of each field in it. Values are whole numbers, in parts of a unit, and columns go by
-- their size, so that a row has some 80 bytes.
create table telemetry (
    vehicle_id bigint not null,
    agency_id  bigint not null,      -- whose vehicle it was
    at         timestamptz not null, -- beginning of the interval
    latitude   integer,              -- millionths of a degree
    longitude  integer,
    after      smallint not null,    -- seconds from then to the first report
    energy     smallint,             -- tenths of a percent
    voltage    smallint,             -- hundredths of a volt
    speed      smallint,             -- tenths of a km/h
    signal     smallint,             -- dBm
    locked     boolean,
    ignition   boolean,
    primary key (vehicle_id, at)
) partition by range (at);

-- Adds the partitions of the days that are kept and of the next ones, where they are missing, and drops those of older days: all, where
-- none is kept. It returns what it did. It gives up where a partition that is too old is being read for longer. Instances call it, so it
-- runs as its owner.
-- +goose StatementBegin
create function keep_telemetry(days integer, ahead integer) returns table (added integer, dropped integer) language plpgsql security definer as $$
declare
    today date := (now() at time zone 'UTC')::date;
    day date;
    name text;
begin
    perform pg_advisory_xact_lock(hashtext('keep_telemetry'));
    added := 0;
    dropped := 0;
    for name in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'telemetry'::regclass and (days <= 0 or to_date(right(c.relname, 10), 'YYYY_MM_DD') < today - days)
    loop
        execute format('drop table %I', name);
        dropped := dropped + 1;
    end loop;
    if days > 0 then
        for day in select today + n from generate_series(-least(days, 400), least(ahead, 7)) as n loop
            name := 'telemetry_' || to_char(day, 'YYYY_MM_DD');
            -- By a query: to_regclass may have cached, before it waited, that there is none.
            continue when exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent = 'telemetry'::regclass and c.relname = name);
            -- To attach it locks out neither readers nor writers of the others.
            execute format('create table %I (like telemetry including all)', name);
            execute format('alter table telemetry attach partition %I for values from (%L) to (%L)', name,
                day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
            added := added + 1;
        end loop;
    end if;
    return next;
end
$$;

do $$
declare
    role record;
begin
    execute format('alter function keep_telemetry(integer, integer) set search_path = %I, pg_temp', current_schema());
    execute 'alter function keep_telemetry(integer, integer) set lock_timeout = ''250ms''';
    execute 'alter function keep_telemetry(integer, integer) set timezone = ''UTC''';
    revoke all on function keep_telemetry(integer, integer) from public;
    -- Roles that write the reported state write its history, too.
    for role in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'snapshots'::regclass and privilege_type = 'UPDATE' and grantee <> c.relowner
    loop
        execute 'grant select, insert, update on telemetry to ' || role.name;
        execute 'grant execute on function keep_telemetry(integer, integer) to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
