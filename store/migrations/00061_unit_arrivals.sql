-- +goose Up

-- moved_at of a unit is also when it came to a vehicle from none, as from a workshop's shelf: what it reports of the time before is not
-- of that vehicle.
-- +goose StatementBegin
create or replace function units_note_move() returns trigger language plpgsql as $$
begin
    new.check_at := clock_timestamp();
    new.moved_at := clock_timestamp();
    return new;
end
$$;
-- +goose StatementEnd
