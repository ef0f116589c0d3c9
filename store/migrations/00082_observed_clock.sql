-- +goose Up

-- The service removes rows by Postgres's clock: keys that have expired, days and months that are too old. A clock that has just leapt
-- must remove nothing. So instances note the time repeatedly, and the row says since when it has passed without a leap.
create table observed_clock (
    singleton    boolean constraint observed_clock_pkey primary key default true constraint observed_clock_once check (singleton),
    observed_at  timestamptz,                             -- null: never
    steady_since timestamptz not null default '-infinity' -- since the latest leap
);
insert into observed_clock default values;
grant select on observed_clock to public;

-- Notes the time, and returns the leap since the time was noted last: more than an hour ahead, or a minute back; else zero. A service
-- that was stopped for an hour cannot tell that from a leap.
-- +goose StatementBegin
create function observe_clock() returns interval language plpgsql security definer as $$
declare
    last timestamptz;
    leap interval := '0';
begin
    select observed_at into last from observed_clock for update;
    if not found then
        insert into observed_clock default values on conflict do nothing;
    end if;
    if last < clock_timestamp() - interval '1 hour' or last > clock_timestamp() + interval '1 minute' then
        leap := clock_timestamp() - last;
    end if;
    update observed_clock
    set observed_at = clock_timestamp(), steady_since = case when leap = interval '0' then steady_since else clock_timestamp() end;
    return leap;
end
$$;

-- Whether the clock has not leapt for six hours, as far as was observed.
create function clock_is_steady() returns boolean language sql stable as $$
    select coalesce((
        select steady_since <= now() - interval '6 hours' and (observed_at is null
            or observed_at between now() - interval '1 hour' and now() + interval '1 minute')
        from observed_clock), true)
$$;

-- As in migration 57, but by a clock that has leapt it drops no day.
create or replace function keep_telemetry(days integer, ahead integer) returns table (added integer, dropped integer) language plpgsql security definer as $$
declare
    today date := (now() at time zone 'UTC')::date;
    steady boolean := clock_is_steady();
    day date;
    name text;
begin
    perform pg_advisory_xact_lock(hashtext('keep_telemetry'));
    added := 0;
    dropped := 0;
    for name in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'telemetry'::regclass and (days <= 0 or steady and to_date(right(c.relname, 10), 'YYYY_MM_DD') < today - days)
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

-- As in migration 48, but a month of which the default partition has entries gets a partition, too, and these move there, up to 100,000.
create or replace function add_activity_partitions(ahead integer) returns setof text language plpgsql security definer as $$
declare
    month timestamp;
    covered timestamp; -- until then the first partition has all
    name text;
    begins timestamptz;
    ends timestamptz;
    has_entries boolean;
begin
    perform pg_advisory_xact_lock(hashtext('add_activity_partitions'));
    select max(to_timestamp(right(relname, 7), 'YYYY_MM')::timestamp + interval '1 month') into covered
    from pg_inherits join pg_class on oid = inhrelid
    where inhparent = 'activity'::regclass and relname ~ '^activity_to_\d{4}_\d{2}$';
    -- As an array: a query that is being read keeps the default partition in use.
    foreach month in array array(
        select date_trunc('month', now() at time zone 'UTC') + n * interval '1 month' from generate_series(0, least(ahead, 24)) as n
        union
        select date_trunc('month', at at time zone 'UTC') from (select at from activity_default limit 100000) as entries
        order by 1)
    loop
        name := 'activity_' || to_char(month, 'YYYY_MM');
        begins := month at time zone 'UTC';
        ends := (month + interval '1 month') at time zone 'UTC';
        continue when to_regclass(name) is not null or month < covered
            or exists (select from activity_default where at >= begins and at < ends offset 100000);
        has_entries := exists (select from activity_default where at >= begins and at < ends);
        perform create_activity_table(name);
        if has_entries then
            -- Whoever reads or adds waits: with a default partition, to attach another one locks the default partition anyway.
            lock table activity_default in access exclusive mode;
            alter table activity_default disable trigger user;
            execute format('with moved as (delete from activity_default where at >= %L and at < %L returning *) insert into %I select * from moved',
                begins, ends, name);
            alter table activity_default enable trigger user;
        end if;
        execute format('alter table activity attach partition %I for values from (%L) to (%L)', name, begins, ends);
        return next name;
    end loop;
end
$$;

-- As in migration 52, but an answer that would come later than it can be by design is not awaited: the clock had leapt ahead. For two
-- minutes after it has gone back the answer may still come.
create or replace function command_awaiting_answer(asked text) returns uuid language sql volatile as $$
    select id from commands
    where unit = asked and lane = 'unit'
        and (state in ('accepted', 'sent', 'received') or state <> 'expired' and received_at is null
            and answer_by > clock_timestamp() and (answer_by < clock_timestamp() + interval '5 minutes' or exists (
                select from observed_clock
                where steady_since > clock_timestamp() - interval '2 minutes' or observed_at > clock_timestamp() + interval '1 minute')))
    order by seq desc limit 1
$$;

do $$
begin
    execute format('alter function observe_clock() set search_path = %I, pg_temp', current_schema());
    execute format('alter function keep_telemetry(integer, integer) set search_path = %I, pg_temp', current_schema());
    execute 'alter function keep_telemetry(integer, integer) set lock_timeout = ''250ms''';
    execute 'alter function keep_telemetry(integer, integer) set timezone = ''UTC''';
    execute format('alter function add_activity_partitions(integer) set search_path = %I, pg_temp', current_schema());
    execute 'alter function add_activity_partitions(integer) set lock_timeout = ''250ms''';
    execute 'alter function add_activity_partitions(integer) set timezone = ''UTC''';
end
$$;
-- +goose StatementEnd
