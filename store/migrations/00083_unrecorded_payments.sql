-- +goose Up

-- Payments of this installation that the payment processor lists and no charge has: a commit was lost. Amounts are what is held
-- or taken, and not refunded.
create table unrecorded_payments (
    intent     text constraint unrecorded_payments_pkey primary key, -- the processor's id
    payment    uuid not null,        -- identity: charges.payment_key
    customer   text not null,        -- the processor's id
    booking    text not null,        -- reference
    kind       text not null,        -- of the charge
    status     text not null constraint unrecorded_payments_status check (status in ('held', 'succeeded')),
    amount     bigint not null,
    currency   text not null,
    created_at timestamptz not null, -- by the processor's clock
    found_at   timestamptz not null default now()
);

-- Roles that write charges write these, too.
-- +goose StatementBegin
do $$
declare
    role record;
begin
    for role in
        select distinct case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as name
        from pg_class as c, aclexplode(c.relacl)
        where c.oid = 'charges'::regclass and privilege_type = 'UPDATE' and grantee <> c.relowner
    loop
        execute 'grant select, insert, delete on unrecorded_payments to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
