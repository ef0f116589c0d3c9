-- +goose Up

-- The subject whose request made a charge, or last gave it another goal; empty: it was made before this was kept.
alter table charges add column requested_by text not null default '';
