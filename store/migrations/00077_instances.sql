-- +goose Up

-- The running instances. Each updates its row each second: that proves that Postgres takes writes, and shows by which key the
-- instance signs, and that it belongs to this database.
create table instances (
    id          text constraint instances_pkey primary key,
    beats       bigint not null,      -- updates; they only grow
    signing_key text not null,
    seen_at     timestamptz not null
) with (fillfactor = 50);

-- Roles that write the reported state write these, too.
-- +goose StatementBegin
do $$
declare
    role record;
begin
    for role in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'snapshots'::regclass and privilege_type = 'UPDATE' and grantee <> c.relowner
    loop
        execute 'grant select, insert, update, delete on instances to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
