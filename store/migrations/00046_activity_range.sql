-- +goose Up

-- The audit log becomes partitioned by month. What there is stays one table, which becomes the first partition: it takes entries until the
-- month after next begins, so that its range can be checked (migration 47) while entries are added.
-- +goose StatementBegin
do $$
begin
    execute format('alter table activity add constraint activity_range check (at < %L) not valid',
        date_trunc('month', now() at time zone 'UTC' + interval '2 months') at time zone 'UTC');
end
$$;
-- +goose StatementEnd
