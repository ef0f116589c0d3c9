-- +goose Up

-- Migrations 15, 40, 58, 69 and 82 were edited after builds of the service had applied them. Such a database gets here what they
-- have now; in any other this changes nothing.
alter table commands add column if not exists booking_id bigint;
alter table charges add column if not exists requested_by text not null default '';

-- +goose StatementBegin
do $$
begin
    if exists (select from pg_attribute where attrelid = 'bookings'::regclass and attname = 'identity' and not attisdropped) then
        alter table bookings rename column identity to cause;
    end if;
end
$$;

create or replace function add_settled_commands_partition(month timestamp) returns void language plpgsql as $$
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
-- +goose StatementEnd
