-- +goose Up

alter table charges validate constraint charges_state_known;
alter table agencies validate constraint agencies_payment_wait_positive;
