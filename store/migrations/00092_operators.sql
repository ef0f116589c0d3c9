-- +goose Up

-- People who sign in to the console with a password: the built-in sign-in.
create table operators (
    id         bigint generated always as identity constraint operators_pkey primary key,
    name       text not null constraint operators_name unique
               constraint operators_name_form check (name ~ '^[a-z0-9][a-z0-9._@-]{0,63}$'),
    role       text not null constraint operators_role_known check (role in ('admin', 'operator', 'viewer')),
    agency_id  bigint constraint operators_agency_exists references agencies,
    scopes     text[] not null,
    password   text, -- Argon2id; null: none was set
    epoch      bigint not null default 1, -- grows with each password: sessions of an earlier one have ended
    link       bytea constraint operators_link unique, -- SHA-256 of the code of the link that sets a password
    link_until timestamptz,
    created_at timestamptz not null default now(),
    constraint operators_see_an_agency check (agency_id is not null or 'all_agencies' = any (scopes)),
    constraint operators_link_ends check ((link is null) = (link_until is null))
);

-- Roles that write payment methods (those of instances) read operators, and set their passwords. Only the owner adds and removes them.
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
        execute 'grant select, update on operators to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
