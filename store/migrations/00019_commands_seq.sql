-- +goose Up
-- +goose NO TRANSACTION

-- A unit takes no command whose number is not greater than its last, so numbers must differ for each vehicle, and one index says so
-- beside what it was for. It is built beside the writing of commands, and waits for whoever began before, a backup too: that holds up
-- nobody. One that was broken off is begun again.

set lock_timeout = 0;
drop index concurrently if exists commands_vehicle_seq;
create unique index concurrently commands_vehicle_seq on commands (vehicle_id, seq desc);
reset lock_timeout;
