package agencykeys

import (
	"context"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// FirstExpiry returns the earliest time, future or past, at which an agency has no key left: when
// the last of its keys that are not revoked retires. Zero: there is no such agency.
func FirstExpiry(ctx context.Context, db *pg.DB) (time.Time, error) {
	var first *time.Time
	err := db.Pool.GetContext(ctx, &first, `
		select min(until) from (
			select max(retires_at) as until from agency_keys
			where state <> 'revoked' group by agency_id having bool_and(retires_at is not null)
		) expiring`)
	return pg.FromTimestamp(first), unavailable.Wrap("read when agency keys retire", err)
}
