-- +goose Up

-- What commands_vehicle_seq does as well.

drop index if exists commands_vehicle;
alter table commands drop constraint if exists commands_seq_unique;
