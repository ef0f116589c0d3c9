package vehicles

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Parked returns the positions of vehicles, without those that drive or have no position.
func (f *Fleet) Parked(ctx context.Context) ([]telematics.Parked, error) {
	// As text: one value that another version of the program wrote must not fail the whole query.
	var rows []struct {
		Agency    telematics.AgencyID `db:"agency_id"`
		Latitude  string              `db:"latitude"`
		Longitude string              `db:"longitude"`
		Speed     *string             `db:"speed"`
		Ignition  *string             `db:"ignition"`
	}
	err := f.db.Lists.SelectContext(ctx, &rows, `
		select v.agency_id, f."location.latitude" ->> 'v' as latitude, f."location.longitude" ->> 'v' as longitude, f."telemetry.speed_kmh" ->> 'v' as speed, f."telemetry.ignition" ->> 'v' as ignition
		from snapshots s join vehicles v on v.id = s.vehicle_id,
			-- Opens each snapshot once, which an operator for each field would do again and again.
			jsonb_to_record(s.fields) as f ("location.latitude" jsonb, "location.longitude" jsonb, "telemetry.speed_kmh" jsonb, "telemetry.ignition" jsonb)
		where f."location.latitude" ->> 'v' is not null and f."location.longitude" ->> 'v' is not null`)
	if err != nil {
		return nil, unavailable.Wrap("read where vehicles stand", err)
	}
	var parked []telematics.Parked
	for _, row := range rows {
		latitude, err1 := strconv.ParseFloat(row.Latitude, 64)
		longitude, err2 := strconv.ParseFloat(row.Longitude, 64)
		if err1 != nil || err2 != nil || isMoving(row.Speed) {
			continue
		}
		parked = append(parked, telematics.Parked{
			Agency: row.Agency, Position: telematics.Position{Latitude: latitude, Longitude: longitude}, Off: pg.Deref(row.Ignition) == "off",
		})
	}
	return parked, nil
}

func isMoving(speed *string) bool {
	kmh, err := strconv.ParseFloat(pg.Deref(speed), 64)
	return err == nil && kmh > telematics.MovingKmh
}

// AcquireLease takes the lease to query the geocoder for the time hold, and returns the number of
// failed requests in a row. It reports false while another instance has the lease, or requests are
// put off. Postgres's clock decides, so a lease whose holder died becomes free again.
func (f *Fleet) AcquireLease(ctx context.Context, holder uuid.UUID, hold time.Duration) (failures int, taken bool, err error) {
	err = f.db.Pool.GetContext(ctx, &failures, `
		update geocoder_turn set holder = $1, free_at = clock_timestamp() + $2 * interval '1 second'
		where free_at <= clock_timestamp()
		returning failures`, holder, hold.Seconds())
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return failures, err == nil, unavailable.Wrap("take the geocoder's lease", err)
}

// KeepAddress stores the geocoder's response, and extends the lease. Where the lease was lost it
// reports false and stores nothing. The row of the lease is locked until the address is committed,
// so that addresses appear in the order of their ids.
func (f *Fleet) KeepAddress(ctx context.Context, holder uuid.UUID, a telematics.Address, hold time.Duration) (bool, error) {
	var id int64
	err := f.db.Pool.GetContext(ctx, &id, `
		with kept as (
			update geocoder_turn set free_at = clock_timestamp() + $2 * interval '1 second', failures = 0
			where holder = $1 and free_at > clock_timestamp()
			returning true
		)
		insert into addresses (latitude, longitude, address)
		select $3, $4, nullif($5, '') from kept
		returning id`,
		holder, hold.Seconds(), a.Position.Latitude, a.Position.Longitude, a.Text)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, unavailable.Wrap("keep an address", err)
}

// ReleaseLease releases the lease, and puts requests off for the time putOff, at every instance. A
// lease that was lost is left alone.
func (f *Fleet) ReleaseLease(ctx context.Context, holder uuid.UUID, failures int, putOff time.Duration) error {
	_, err := f.db.Pool.ExecContext(ctx, `
		update geocoder_turn set holder = null, failures = $2, free_at = clock_timestamp() + $3 * interval '1 second'
		where holder = $1`, holder, failures, putOff.Seconds())
	return unavailable.Wrap("release the geocoder's lease", err)
}

// Addresses returns the addresses with an id above after, by id; of more than limit, the latest
// ones.
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

// ForgetAddresses removes addresses older than age, and all but the latest keep.
func (f *Fleet) ForgetAddresses(ctx context.Context, age time.Duration, keep int) error {
	_, err := f.db.Lists.ExecContext(ctx, `
		delete from addresses
		where asked_at < clock_timestamp() - $1 * interval '1 second'
			or id <= (select id from addresses order by id desc offset $2 limit 1)`, age.Seconds(), keep)
	return unavailable.Wrap("forget addresses", err)
}
