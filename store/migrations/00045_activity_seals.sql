-- +goose Up

-- Seals of the audit log. A seal covers the entries of a range of ids, all of one month, and contains the hash of the seal before it: whoever
-- changes, removes or inserts an entry of a range, or changes a seal, contradicts the chain. store/activity/seal.go has the form of what is hashed.
create table activity_seals (
    number        bigint constraint activity_seals_pkey primary key,
    month         text not null,         -- of its entries, in UTC: 2026-11
    first_id      bigint not null,       -- the range begins after that of the seal before
    last_id       bigint not null,
    entries       integer not null,
    first_at      timestamptz,           -- the earliest and the latest entry; null: there is none
    last_at       timestamptz,
    digest        bytea not null,        -- SHA-256 of the entries
    marks         bytea not null,        -- id and checksum of each entry, to find the one that was changed
    pruned_before text,                  -- this seal records that entries of months before this one were removed
    sealed_at     timestamptz not null,
    hash          bytea not null         -- SHA-256 of this seal with the hash of the one before
);

-- It names the table now, since there are two.
-- +goose StatementBegin
create or replace function activity_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only: % refused', tg_table_name, lower(tg_op)
        using errcode = 'restrict_violation';
end
$$;
-- +goose StatementEnd

create trigger activity_seals_append_only before update or delete or truncate on activity_seals
    for each statement execute function activity_refuse_change();

-- Roles that add entries seal them, too.
-- +goose StatementBegin
do $$
declare
    role record;
begin
    for role in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'activity'::regclass and privilege_type = 'INSERT' and grantee <> c.relowner
    loop
        execute 'grant select, insert on activity_seals to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
