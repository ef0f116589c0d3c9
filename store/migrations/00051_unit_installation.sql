-- +goose Up

-- How a unit is built into its vehicle, in the words of its protocol: an object of texts.
alter table units add column installation jsonb not null default '{}'
    constraint units_installation_object check (jsonb_typeof(installation) = 'object');

-- +goose Down

alter table units drop column installation;
