-- +goose Up

-- What commands_vehicle_seq does as well.

drop index commands_vehicle;
alter table commands drop constraint commands_seq_unique;
