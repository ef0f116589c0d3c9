-- +goose Up

-- Until when the client may mend the refused payment of an extension, which is taken back then.
alter table charges add column mend_by timestamptz;
