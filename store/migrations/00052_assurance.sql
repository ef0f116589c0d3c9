-- +goose Up

-- Units that check less than protocol v1 asks for. What held of a command when it was accepted: bits for signed, expiring, deduplicated,
-- correlated, confirmed, and null for all of them: commands of a version without this column went to units of protocol v1.
alter table commands add column assurance smallint;
alter table settled_commands add column assurance smallint;

-- Until when the answer to a command may come that its unit gives without the command's id; null: it has come, or names its command.
alter table commands add column answer_by timestamptz;
alter table settled_commands add column answer_by timestamptz;

-- Such a unit has one lane for all actions. Rows that are there keep the narrower rules, so migration 53 validates at leisure.
alter table commands
    drop constraint commands_lane_known,
    add constraint commands_lane_known check (lane in ('access', 'attention', 'top_case', 'refresh', 'unit')) not valid,
    drop constraint commands_lane_fits,
    add constraint commands_lane_fits
        check (lane = 'unit' or (lane = 'attention') = (action = 'attention') and (lane = 'top_case') = (action = 'open-top-case')
            and (lane = 'refresh') = (action = 'report-state')) not valid;

-- Whether commands that open a vehicle go to units that check no expiry, which may execute them late.
alter table agencies add column best_effort_unlock boolean not null default false;

-- The command of a unit that awaits its answer, where answers name no command: it is open, or may be answered late. Volatile, so that each
-- call sees what is committed by then, and not what was when the statement of its caller began.
-- +goose StatementBegin
create function command_awaiting_answer(asked text) returns uuid language sql volatile as $$
    select id from commands
    where unit = asked and lane = 'unit'
        and (state in ('accepted', 'sent', 'received') or state <> 'expired' and received_at is null and answer_by > clock_timestamp())
    order by seq desc limit 1
$$;

-- As in migration 40, with the new column.
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
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by)
    select id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by
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
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by)
    select id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance, actor_subject, actor_role,
        actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, received_at,
        completed_at, deadline, bulk_id, booking_id, assurance, answer_by
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
