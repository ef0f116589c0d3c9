-- +goose Up
-- +goose NO TRANSACTION

-- For answers that name no command.
set lock_timeout = '1min';
drop index concurrently if exists commands_unit_lane;
create index concurrently commands_unit_lane on commands (unit, seq desc) where lane = 'unit';
reset lock_timeout;

-- Checks the rows that migration 52 found. Commands are written meanwhile.
alter table commands
    validate constraint commands_lane_known,
    validate constraint commands_lane_fits;

-- And of migration 51.
alter table units validate constraint units_installation_object;
