-- +goose Up

-- Actions are listed in telematics/action.go alone: a new one needs no migration. What a vehicle and a lane are, is still checked.
alter table commands drop constraint commands_action_known, drop constraint commands_lane_fits;
alter table vehicles drop constraint vehicles_capabilities_known;
