-- +goose Up

-- Which protocol a unit speaks. Which of them there are, the program knows: a new one
-- changes nothing here.
alter table units add column protocol text not null default 'v1'
    constraint units_protocol_form check (protocol ~ '^[a-z0-9][a-z0-9.-]{0,31}$');
