-- +goose Up

-- A vehicle refuses a command whose number is not greater than its last. After a restore, or a failover to a standby that is behind, a
-- sequence by itself goes back. So the first number that is drawn in each life of a server (from its start, or from its promotion) comes
-- after a jump: to the time in microseconds since 1970, or past what can have been lost, whichever is greater.
--
-- A server that has served can only become a standby by a restart, so the time of its start names such a life. The sequence's oid is
-- another one where a dump was restored.
create table command_numbering (
    singleton    boolean constraint command_numbering_pkey primary key default true constraint command_numbering_once check (singleton),
    server_start timestamptz not null default '-infinity', -- of the server that raised the sequence last
    sequence     oid not null default 0,                   -- that was raised
    raised_at    timestamptz                               -- null: never
);
insert into command_numbering default values;

-- Every role that may claim draws numbers, also one that was granted its rights before this table was here.
grant select on command_numbering to public;

-- Raises the sequence where it was not raised in this life of the server, or always, and returns the number that it was raised to and the
-- one that it had; nothing where it was not raised. Whoever draws meanwhile waits until the raise is committed.
-- +goose StatementBegin
create function raise_commands_seq(always boolean, out was bigint, out is_now bigint) returns setof record language plpgsql security definer as $$
begin
    if not exists (select from command_numbering) then
        insert into command_numbering default values on conflict do nothing;
    end if;
    perform from command_numbering for update;
    if not always and exists (
        select from command_numbering where server_start = pg_postmaster_start_time() and sequence = 'commands_seq'::regclass::oid
    ) then
        return;
    end if;
    was := nextval('commands_seq');
    is_now := setval('commands_seq', greatest(was + 10000000, (extract(epoch from clock_timestamp()) * 1000000)::bigint));
    update command_numbering
    set server_start = pg_postmaster_start_time(), sequence = 'commands_seq'::regclass::oid, raised_at = clock_timestamp();
    return next;
end
$$;

-- It runs as its owner, since to raise a sequence needs more rights than to draw from it: so it looks for tables here alone.
do $$
begin
    execute format('alter function raise_commands_seq(boolean) set search_path = %I, pg_temp', current_schema());
end
$$;

-- Draws a command's number. The version before draws with it, too.
create function next_command_seq() returns bigint language plpgsql as $$
begin
    if not exists (
        select from command_numbering where server_start = pg_postmaster_start_time() and sequence = 'commands_seq'::regclass::oid
    ) then
        perform raise_commands_seq(false);
    end if;
    return nextval('commands_seq');
end
$$;
-- +goose StatementEnd

alter table commands alter column seq set default next_command_seq();
