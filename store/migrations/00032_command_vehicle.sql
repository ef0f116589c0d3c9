-- +goose Up

-- Each command has a vehicle. The foreign key replaces the trigger of migration 18.

drop trigger vehicles_keep_commands on vehicles;
drop function vehicles_keep_commands();
alter table commands
    add constraint commands_vehicle_exists foreign key (vehicle_id) references vehicles not valid;
