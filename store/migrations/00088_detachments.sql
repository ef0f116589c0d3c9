-- +goose Up

-- Cards that are to be detached at the payment processor, unless they are payment methods then: those that were removed,
-- and those that are being attached.
create table detachments (
    token     text constraint detachments_pkey primary key,
    client_id bigint not null constraint detachments_client_exists references clients,
    due_at    timestamptz not null
);
create index detachments_due on detachments (due_at);
create index detachments_client on detachments (client_id);
