-- +goose Up

-- What is decided once for an installation, by whichever instance comes first.

create table settings (
    name    text constraint settings_pkey primary key,
    value   text not null,
    made_at timestamptz not null default now()
);
