// Package idempotency stores the results of requests with an idempotency key, in Postgres.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package idempotency

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// KeptSince is the SQL of the time since when keys are in force; older ones have expired. It uses
// Postgres's clock: an instance whose clock is ahead must not free keys that others rely on. While
// that clock has leapt, all keys are in force.
var KeptSince = `case when ` + pg.Steady + ` then now() - ` + pg.Interval(telematics.KeptFor) + ` else '-infinity' end`

// Forget removes up to limit expired keys, and reports whether there may be others.
func Forget(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	// A key that was made by a clock far ahead would never expire. By a clock that has gone back,
	// it is one of now.
	_, err = db.Pool.ExecContext(
		ctx, `update idempotency_keys set made_at = now() where made_at > now() + interval '1 hour' and `+pg.Steady,
	)
	if err != nil {
		return false, unavailable.Wrap("correct idempotency keys", err)
	}
	return db.Forget(ctx, "forget idempotency keys", `
		delete from idempotency_keys
		where (agency_id, subject, key) in (
			select agency_id, subject, key from idempotency_keys
			where made_at <= `+KeptSince+` order by made_at limit $1 for update skip locked)`, limit)
}

// Names is the result that an idempotency key stands for: a booking, perhaps with a transition of
// it, or one of the others.
type Names struct {
	Booking    rental.BookingID
	Transition *rental.TransitionID // that the request has begun or joined
	Method     rental.MethodID
	Refusal    *telematics.Error // a refusal that is to be repeated
}

// Take stores, in a transaction, the result that an idempotency key stands for. Where the key is in
// use it stores nothing and returns the earlier result; where that is of another request it fails
// with IdempotencyMismatch. It waits for a concurrent transaction that takes the same key. Without
// a key it does nothing.
func Take(ctx context.Context, tx *sqlx.Tx, key *telematics.IdempotencyKey, n Names) (earlier *Names, err error) {
	if key == nil {
		return nil, nil
	}
	_, err = tx.ExecContext(ctx, `
		delete from idempotency_keys
		where agency_id = $1 and subject = $2 and key = $3 and made_at <= `+KeptSince,
		key.Agency, key.Subject, key.Key)
	if err != nil {
		return nil, err
	}
	var refusal *string
	if n.Refusal != nil {
		refusal = new(pg.JSON(telematics.NewFailure(n.Refusal)))
	}
	taken, err := pg.Affected(tx.ExecContext(ctx, `
		insert into idempotency_keys (agency_id, subject, key, fingerprint, booking_id, transition_id, payment_method_id, refusal)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict do nothing`,
		key.Agency, key.Subject, key.Key, key.Fingerprint[:],
		pg.Nullable(int64(n.Booking)), n.Transition, pg.Nullable(int64(n.Method)), refusal))
	if err != nil || taken == 1 {
		return nil, err
	}
	earlier, err = Find(ctx, tx, key)
	if err == nil && earlier == nil { // freed a moment ago
		err = telematics.StillOpen(telematics.NoCommand)
	}
	return earlier, err
}

// Find returns the result that an idempotency key stands for; nil: the key is free. Where it is of
// another request, it fails with IdempotencyMismatch.
func Find(ctx context.Context, db pg.Querier, key *telematics.IdempotencyKey) (*Names, error) {
	if key == nil || !pg.Searchable(key.Subject, key.Key) {
		return nil, nil
	}
	var n Names
	var fingerprint, refused []byte
	found, err := pg.One(ctx, db, []any{&fingerprint, pg.OrZero(&n.Booking), &n.Transition, pg.OrZero(&n.Method), &refused}, `
		select fingerprint, booking_id, transition_id, payment_method_id, refusal
		from idempotency_keys
		where agency_id = $1 and subject = $2 and key = $3 and made_at > `+KeptSince,
		key.Agency, key.Subject, key.Key)
	if err != nil || !found {
		return nil, err
	}
	if string(fingerprint) != string(key.Fingerprint[:]) {
		return nil, telematics.KeyMismatch()
	}
	if refused != nil {
		var refusal telematics.Failure
		if err := json.Unmarshal(refused, &refusal); err != nil {
			return nil, fmt.Errorf("refusal under an idempotency key: %w", err)
		}
		n.Refusal = refusal.Err()
	}
	return &n, nil
}
