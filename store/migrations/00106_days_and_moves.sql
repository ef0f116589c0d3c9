-- +goose Up

-- As in migration 82, but days are added first, also where none can be dropped: to drop one waits for all who read the history, as a
-- backup does for hours. Then dropped is null.
-- +goose StatementBegin
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
    for name in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'telemetry'::regclass and (days <= 0 or steady and to_date(right(c.relname, 10), 'YYYY_MM_DD') < today - days)
    loop
        begin
            execute format('drop table %I', name);
        exception when lock_not_available then
            dropped := null; -- the next call drops it
            exit;
        end;
        dropped := dropped + 1;
    end loop;
    return next;
end
$$;

-- As in migration 29, but in which areas a vehicle is, is unknown until it is compared with those of the agency that it came to.
create or replace function vehicles_note_move() returns trigger language plpgsql security definer as $$
begin
    new.moved_at := clock_timestamp();
    update alert_inputs set outside = null, forbidden = null where vehicle_id = new.id;
    return new;
end
$$;

do $$
begin
    execute format('alter function vehicles_note_move() set search_path = %I, pg_temp', current_schema());
    execute format('alter function keep_telemetry(integer, integer) set search_path = %I, pg_temp', current_schema());
    execute 'alter function keep_telemetry(integer, integer) set lock_timeout = ''250ms''';
    execute 'alter function keep_telemetry(integer, integer) set timezone = ''UTC''';
end
$$;
-- +goose StatementEnd
