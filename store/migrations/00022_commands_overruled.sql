-- +goose Up

-- The unit had rejected the command, and said later that it was executed. A version that does not write it loses the alarm and nothing else.
alter table commands add column overruled boolean not null default false;
