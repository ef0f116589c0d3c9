package vehicles

import (
	"context"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Addresses returns addresses that were kept after the one with this id, by id; of too
// many, the last ones.
func (f *Fleet) Addresses(ctx context.Context, after int64, limit int) ([]telematics.Address, error) {
	var rows []struct {
		ID        int64     `db:"id"`
		Latitude  float64   `db:"latitude"`
		Longitude float64   `db:"longitude"`
		Address   *string   `db:"address"`
		AskedAt   time.Time `db:"asked_at"`
	}
	err := f.db.Lists.SelectContext(ctx, &rows, `
		select * from (select id, latitude, longitude, address, asked_at from addresses where id > $1 order by id desc limit $2) newest
		order by id`, after, limit)
	if err != nil {
		return nil, unavailable.Wrap("read addresses", err)
	}
	addresses := make([]telematics.Address, len(rows))
	for i, row := range rows {
		addresses[i] = telematics.Address{
			ID: row.ID, Position: telematics.Position{Latitude: row.Latitude, Longitude: row.Longitude},
			Text: pg.Deref(row.Address), AskedAt: row.AskedAt.UTC(),
		}
	}
	return addresses, nil
}

// ForgetAddresses removes the addresses that are older than so long, and all but the last
// so many.
func (f *Fleet) ForgetAddresses(ctx context.Context, age time.Duration, keep int) error {
	_, err := f.db.Lists.ExecContext(ctx, `
		delete from addresses
		where asked_at < clock_timestamp() - $1 * interval '1 second'
			or id <= (select id from addresses order by id desc offset $2 limit 1)`, age.Seconds(), keep)
	return unavailable.Wrap("forget addresses", err)
}
