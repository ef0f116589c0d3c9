-- +goose Up

alter table charges validate constraint charges_goal_of_deposits;
