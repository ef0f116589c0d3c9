package vehicles

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// TakeTurn takes the turn to ask the geocoder, for so long, and returns how often it has
// failed in a row; or false while it is another's, or asking is put off. Postgres's clock
// decides, so a turn whose holder died is free again by itself.
func (f *Fleet) TakeTurn(ctx context.Context, holder uuid.UUID, hold time.Duration) (failures int, taken bool, err error) {
	err = f.db.Pool.GetContext(ctx, &failures, `
		update geocoder_turn set holder = $1, free_at = clock_timestamp() + $2 * interval '1 second'
		where free_at <= clock_timestamp()
		returning failures`, holder, hold.Seconds())
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return failures, err == nil, unavailable.Wrap("take the turn to ask the geocoder", err)
}

// KeepAddress keeps what the geocoder said, and the turn for so long again. Where the turn
// was lost it reports false and keeps nothing: the row of the turn is locked until the
// address is there, so that addresses appear in the order of their ids.
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

// EndTurn gives the turn back, and puts asking off for so long, at every instance. A
// turn that was lost is left alone.
func (f *Fleet) EndTurn(ctx context.Context, holder uuid.UUID, failures int, putOff time.Duration) error {
	_, err := f.db.Pool.ExecContext(ctx, `
		update geocoder_turn set holder = null, failures = $2, free_at = clock_timestamp() + $3 * interval '1 second'
		where holder = $1`, holder, failures, putOff.Seconds())
	return unavailable.Wrap("end the turn to ask the geocoder", err)
}
