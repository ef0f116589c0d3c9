-- +goose Up

-- Roles that write payment methods write detachments, too.
-- +goose StatementBegin
do $$
declare
    role record;
begin
    for role in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'payment_methods'::regclass and privilege_type = 'UPDATE' and grantee <> c.relowner
    loop
        execute 'grant select, insert, update, delete on detachments to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
