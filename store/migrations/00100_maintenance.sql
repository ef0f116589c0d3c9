-- +goose Up
-- +goose NO TRANSACTION

set lock_timeout = '250ms'; -- also where an attempt has failed further below

-- Why a vehicle is in maintenance, who has said so, since when, and until when: then it returns to service.
alter table vehicles
    add column if not exists maintenance_reason text not null default '',
    add column if not exists maintenance_by     text not null default '',
    add column if not exists maintenance_since  timestamptz,
    add column if not exists maintenance_until  timestamptz;

-- Instances of the version before change the status alone.
-- +goose StatementBegin
create or replace function vehicles_leave_maintenance() returns trigger language plpgsql as $$
begin
    new.maintenance_reason := '';
    new.maintenance_by := '';
    new.maintenance_since := null;
    new.maintenance_until := null;
    return new;
end
$$;
-- +goose StatementEnd
drop trigger if exists vehicles_leave_maintenance on vehicles;
create trigger vehicles_leave_maintenance before update of status on vehicles
    for each row when (old.status = 'maintenance' and new.status <> 'maintenance') execute function vehicles_leave_maintenance();

set lock_timeout = '1min';
drop index concurrently if exists vehicles_maintenance_until;
create index concurrently vehicles_maintenance_until on vehicles (maintenance_until) where maintenance_until is not null;
set lock_timeout = '250ms';
