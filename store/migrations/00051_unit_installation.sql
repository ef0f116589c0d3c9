-- +goose Up

-- How a unit is built into its vehicle, in the words of its protocol: an object of texts. Migration 53 validates.
alter table units add column installation jsonb not null default '{}';
alter table units add constraint units_installation_object check (jsonb_typeof(installation) = 'object') not valid;
