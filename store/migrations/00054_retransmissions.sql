-- +goose Up

-- When a command was published again, in milliseconds after sent_at; null: never, or not written down. Settlements write it in the
-- statement that they have.
alter table commands add column retransmitted_ms integer[];
alter table settled_commands add column retransmitted_ms integer[];

-- As in migration 52, with the new column.
-- +goose StatementBegin
create or replace function move_settled_commands(age interval, batch integer) returns integer language plpgsql security definer as $$
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
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by, retransmitted_ms)
    select id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by, retransmitted_ms
    from gone order by id;
    get diagnostics moved = row_count;
    return moved;
end
$$;

create or replace function return_settled_commands(wanted uuid[]) returns integer language plpgsql security definer as $$
declare
    returned integer;
begin
    with gone as (
        delete from settled_commands where id = any (wanted) and state in ('unknown', 'expired', 'rejected') returning *
    )
    insert into commands (id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by, retransmitted_ms)
    select id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by, retransmitted_ms
    from gone order by id;
    get diagnostics returned = row_count;
    return returned;
end
$$;

-- Functions that run as their owner look for tables here alone.
do $$
begin
    execute format('alter function move_settled_commands(interval, integer) set search_path = %I, pg_temp', current_schema());
    execute format('alter function return_settled_commands(uuid[]) set search_path = %I, pg_temp', current_schema());
end
$$;
-- +goose StatementEnd
