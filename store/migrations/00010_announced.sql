-- +goose Up

-- The connectivity that was last told of: who writes it, tells of it, so each change is told
-- once among all instances. It is on no index: units change with every message.
alter table units add column announced text not null default 'unknown'
    constraint units_announced_known check (announced in ('online', 'standby', 'offline', 'unknown'));
