-- +goose Up
-- +goose NO TRANSACTION

-- Positions from before: of vehicles that do not move, and report nothing new.
insert into positions (vehicle_id, latitude, longitude)
select vehicle_id, north::float8, east::float8
from (
    select vehicle_id, fields -> 'location.latitude' -> 'v' as north, fields -> 'location.longitude' -> 'v' as east
    from snapshots
) s
where jsonb_typeof(north) = 'number' and jsonb_typeof(east) = 'number' and north between '-90' and '90' and east between '-180' and '180'
on conflict (vehicle_id) do nothing;

-- Bookings that lapse unless they are started.
set lock_timeout = '1min';
drop index concurrently if exists bookings_reserved;
create index concurrently bookings_reserved on bookings (reserved_until) where state = 'upcoming' and reserved_until is not null;
set lock_timeout = '250ms';
