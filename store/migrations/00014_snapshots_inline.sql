-- +goose Up

-- A snapshot is rewritten again and again: it stays in its row, uncompressed, where that
-- costs least.
alter table snapshots set (toast_tuple_target = 8160);
