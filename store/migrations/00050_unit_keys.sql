-- +goose Up

-- Ids of the fleet's public keys that a unit said it holds; null: it never said. Units change with
-- every message, so it is on no index: it is counted by a scan, when keys are rotated.
alter table units add column keys text[];
