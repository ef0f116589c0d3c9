-- +goose Up
-- +goose NO TRANSACTION

-- A unit takes no command whose number is not greater than its last, so numbers must differ for each vehicle, and one index says so
-- beside what it was for. It is built beside the writing of commands, and begun again where that was broken off.

drop index concurrently if exists commands_vehicle_seq;
create unique index concurrently commands_vehicle_seq on commands (vehicle_id, seq desc);
drop index concurrently if exists commands_vehicle;
alter table commands drop constraint if exists commands_seq_unique;
