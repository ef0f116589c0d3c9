package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/telematics"
)

// bookingUnder returns the booking that an earlier request under a key was about; zero: there was none. Another
// request under the key is a mistake.
func bookingUnder(ctx context.Context, tx *sqlx.Tx, k *telematics.IdempotencyKey) (rental.BookingID, error) {
	if k == nil {
		return 0, nil
	}
	var row struct {
		Fingerprint []byte            `db:"fingerprint"`
		Booking     *rental.BookingID `db:"booking_id"`
	}
	err := tx.GetContext(ctx, &row, `
		select fingerprint, booking_id from idempotency_keys
		where agency_id = $1 and subject = $2 and key = $3 and made_at > $4`,
		k.Agency, k.Subject, k.Key, keptSince())
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	case row.Booking == nil || !bytes.Equal(row.Fingerprint, k.Fingerprint[:]):
		return 0, telematics.KeyMismatch()
	}
	return *row.Booking, nil
}

// keepKey writes down that a request under a key was about a booking. It fails with keyTaken where another one
// came first.
func keepKey(ctx context.Context, tx *sqlx.Tx, k *telematics.IdempotencyKey, booking rental.BookingID) error {
	if k == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, `
		delete from idempotency_keys
		where agency_id = $1 and subject = $2 and key = $3 and made_at <= $4`,
		k.Agency, k.Subject, k.Key, keptSince())
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		insert into idempotency_keys (agency_id, subject, key, fingerprint, booking_id) values ($1, $2, $3, $4, $5)`,
		k.Agency, k.Subject, k.Key, k.Fingerprint[:], booking)
	return err
}
