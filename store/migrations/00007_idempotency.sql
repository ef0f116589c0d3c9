-- +goose Up

-- What a caller has named, so that it can ask again without doing it again. A row is
-- written with what it names, in one statement, and goes when that was not executed.
create table idempotency_keys (
    agency_id   bigint not null, -- of the caller; 0: bound to none
    subject     text not null,
    key         text not null,
    fingerprint bytea not null constraint idempotency_keys_fingerprint_length check (length(fingerprint) = 32),
    command_id  uuid constraint idempotency_keys_command_exists references commands,
    bulk_id     uuid constraint idempotency_keys_bulk_exists references bulks,
    made_at     timestamptz not null default clock_timestamp(),
    constraint idempotency_keys_pkey primary key (agency_id, subject, key),
    constraint idempotency_keys_name_one_thing check (num_nonnulls(command_id, bulk_id) = 1)
);

create index idempotency_keys_command on idempotency_keys (command_id) where command_id is not null;
create index idempotency_keys_made on idempotency_keys (made_at);
