-- +goose Up

-- After a restore, or a failover to a standby that is behind, references and ids would be issued again, to others. So the first one in each
-- life of a server (see migration 24) comes after a jump, by more than what can have been lost. The previous version jumps with it.
alter table booking_numbers add column server_start timestamptz; -- null: nothing was drawn since this migration

-- +goose StatementBegin
create function booking_numbers_jump() returns trigger language plpgsql as $$
declare
    other boolean := case tg_op when 'UPDATE' then old.server_start <> pg_postmaster_start_time()
        else exists (select from booking_numbers where year <> new.year) -- a new year
            and not exists (select from booking_numbers where server_start = pg_postmaster_start_time()) end;
begin
    if other then
        new.last := new.last + 100000;
    end if;
    new.server_start := pg_postmaster_start_time();
    return new;
end
$$;

create table id_numbering (
    name         text constraint id_numbering_pkey primary key,
    server_start timestamptz not null,
    sequence     oid not null -- another one where a dump was restored
);
insert into id_numbering
select name, pg_postmaster_start_time(), pg_get_serial_sequence(format('%I.%I', current_schema(), name), 'id')::regclass
from unnest(array['bookings', 'payment_methods', 'clients']) name;

-- It runs as its owner, since to raise a sequence needs more rights than to draw from it.
create function ids_jump() returns trigger language plpgsql security definer as $$
declare
    seq regclass := pg_get_serial_sequence(format('%I.%I', tg_table_schema, tg_table_name), 'id')::regclass;
begin
    if exists (select from id_numbering where name = tg_table_name and server_start = pg_postmaster_start_time() and sequence = seq::oid) then
        return new;
    end if;
    insert into id_numbering as n values (tg_table_name, pg_postmaster_start_time(), seq)
    on conflict (name) do update set server_start = excluded.server_start, sequence = excluded.sequence
    where (n.server_start, n.sequence) is distinct from (excluded.server_start, excluded.sequence);
    if found then
        perform setval(seq, nextval(seq) + 1000000);
    end if;
    new.id := nextval(seq); -- the one that it has may have been issued before
    return new;
end
$$;
do $$
begin
    execute format('alter function ids_jump() set search_path = %I, pg_temp', current_schema());
end
$$;
-- +goose StatementEnd

create trigger booking_numbers_jump before insert or update of last on booking_numbers for each row execute function booking_numbers_jump();
create trigger bookings_id_jumps before insert on bookings for each row execute function ids_jump();
create trigger payment_methods_id_jumps before insert on payment_methods for each row execute function ids_jump();
create trigger clients_id_jumps before insert on clients for each row execute function ids_jump();
