-- +goose Up
-- +goose NO TRANSACTION

-- A unit takes no command whose number is not greater than its last, so numbers must differ for each vehicle, and one index says so
-- beside what it was for. It is built beside the writing of commands, and then waits for whoever began before. That holds up no command, so
-- it may take longer than for a lock that does: each time that it is given up, the index is built again.

set lock_timeout = '1min';
drop index concurrently if exists commands_vehicle_seq;
create unique index concurrently commands_vehicle_seq on commands (vehicle_id, seq desc);
reset lock_timeout;
