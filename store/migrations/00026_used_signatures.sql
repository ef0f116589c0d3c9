-- +goose Up

-- Signatures of agencies' apps that were used for a change, for as long as they would still be fresh. Times are those of Postgres's
-- clock, which also decides whether a signature is fresh: a row that is gone cannot be used again.
create table used_signatures (
    key_id     text not null,
    nonce      text not null,
    agency_id  bigint not null,
    subject    text not null,
    attempt    uuid not null, -- tells a retry of the same statement from another request
    expires_at timestamptz not null,
    constraint used_signatures_pkey primary key (key_id, nonce)
);

create index used_signatures_client on used_signatures (agency_id, subject, expires_at);
create index used_signatures_expired on used_signatures (expires_at);
