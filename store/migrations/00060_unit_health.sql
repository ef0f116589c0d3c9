-- +goose Up

-- What was counted of units, by hours, for a day: reconnects, and why messages were rejected. Without a reference to units, whose rows
-- are locked in another order.
create table unit_counts (
    unit    text not null,
    hour    timestamptz not null, -- its beginning
    kind    text not null,        -- reconnect, or a reason
    count   bigint not null,
    last_at timestamptz not null,
    primary key (unit, hour, kind)
) with (fillfactor = 80);
create index unit_counts_hour on unit_counts (hour);

-- How far the clocks of units are ahead of ours.
create table unit_clocks (
    unit     text primary key,
    ahead_ms bigint not null,
    at       timestamptz not null
) with (fillfactor = 80);

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
        execute 'grant select, insert, update, delete on unit_counts, unit_clocks to ' || role.name;
    end loop;
end
$$;
-- +goose StatementEnd
