-- +goose Up

-- When a unit left its vehicle, or got another protocol, so that every instance that has cached its vehicle learns of it
-- within a second. A unit that is new is cached nowhere.
alter table units add column moved_at timestamptz;

-- When the unit's connectivity must be compared with what was announced, at the latest; null: not before it is heard. It
-- may be too early, and is then moved: so a report, which changes when that is, changes no index.
alter table units add column check_at timestamptz default now();

-- +goose StatementBegin
create function units_note_move() returns trigger language plpgsql as $$
begin
    new.check_at := clock_timestamp();
    if old.vehicle_id is not null then
        new.moved_at := clock_timestamp();
    end if;
    return new;
end
$$;
-- +goose StatementEnd

create trigger units_note_move before update of vehicle_id, protocol on units
    for each row when ((old.vehicle_id, old.protocol) is distinct from (new.vehicle_id, new.protocol))
    execute function units_note_move();
