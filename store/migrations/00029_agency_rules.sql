-- +goose Up

-- How long after the end of a booking its client can still unlock the vehicle, and the highest fee that can be charged at
-- once; null: what rental.Dossier.FeeLimit derives from the booking's own price.
alter table agencies
    add column unlock_grace interval not null default '60 minutes' constraint agencies_unlock_grace_positive check (unlock_grace >= '0'),
    add column fee_limit    bigint constraint agencies_fee_limit_range check (fee_limit between 1 and 1000000000000);

-- When a vehicle came to another agency, so that every instance learns of it within a second (store/directory.go).
alter table vehicles add column moved_at timestamptz;
create index vehicles_moved on vehicles (moved_at) where moved_at is not null;

-- +goose StatementBegin
create function vehicles_note_move() returns trigger language plpgsql as $$
begin
    new.moved_at := clock_timestamp();
    return new;
end
$$;
-- +goose StatementEnd

create trigger vehicles_note_move before update of agency_id on vehicles
    for each row when (old.agency_id is distinct from new.agency_id) execute function vehicles_note_move();
