package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// names is what an idempotency key stands for: one of them.
type names struct {
	Booking rental.BookingID
	Method  rental.MethodID
	Refusal *telematics.Error // a refusal that is to be repeated
}

// takeKey writes down, as a part of a transaction, what an idempotency key stands for. Where the key is in use it returns
// what for, and has written nothing; where that was another request it fails with IdempotencyMismatch. It waits for
// whoever is about to take the same key. No key is no use of one.
func takeKey(ctx context.Context, tx *sqlx.Tx, key *telematics.IdempotencyKey, n names) (earlier *names, err error) {
	if key == nil {
		return nil, nil
	}
	_, err = tx.ExecContext(ctx, `
		delete from idempotency_keys
		where agency_id = $1 and subject = $2 and key = $3 and made_at <= `+keptSince,
		key.Agency, key.Subject, key.Key)
	if err != nil {
		return nil, err
	}
	result, err := tx.ExecContext(ctx, `
		insert into idempotency_keys (agency_id, subject, key, fingerprint, booking_id, payment_method_id, refusal)
		values ($1, $2, $3, $4, $5, $6, $7)
		on conflict do nothing`,
		key.Agency, key.Subject, key.Key, key.Fingerprint[:],
		pg.Nullable(int64(n.Booking)), pg.Nullable(int64(n.Method)), encodeRefusal(n.Refusal))
	if err != nil {
		return nil, err
	}
	if taken, err := result.RowsAffected(); err != nil || taken == 1 {
		return nil, err
	}
	earlier, err = namedBy(ctx, tx, key)
	if err == nil && earlier == nil { // freed a moment ago
		err = telematics.StillOpen(telematics.Command{})
	}
	return earlier, err
}

// namedBy returns what an idempotency key stands for; nil: it is free. Where it stands for another request, it fails with
// IdempotencyMismatch.
func namedBy(ctx context.Context, db sqlx.QueryerContext, key *telematics.IdempotencyKey) (*names, error) {
	if key == nil || !pg.Searchable(key.Subject, key.Key) {
		return nil, nil
	}
	var rows []struct {
		Fingerprint []byte  `db:"fingerprint"`
		BookingID   *int64  `db:"booking_id"`
		MethodID    *int64  `db:"payment_method_id"`
		Refusal     *string `db:"refusal"`
	}
	err := sqlx.SelectContext(ctx, db, &rows, `
		select fingerprint, booking_id, payment_method_id, refusal
		from idempotency_keys
		where agency_id = $1 and subject = $2 and key = $3 and made_at > `+keptSince,
		key.Agency, key.Subject, key.Key)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	row := rows[0]
	n := &names{Booking: rental.BookingID(pg.Deref(row.BookingID)), Method: rental.MethodID(pg.Deref(row.MethodID))}
	if string(row.Fingerprint) != string(key.Fingerprint[:]) {
		return nil, telematics.KeyMismatch()
	}
	if row.Refusal != nil {
		if n.Refusal, err = decodeRefusal(*row.Refusal); err != nil {
			return nil, fmt.Errorf("refusal under an idempotency key: %w", err)
		}
	}
	return n, nil
}

// encodeRefusal returns the JSON of a refusal; nil: there is none.
func encodeRefusal(e *telematics.Error) *string {
	if e == nil {
		return nil
	}
	text := pg.JSONRecords(newRefusalRow(e))
	return &text
}

func decodeRefusal(text string) (*telematics.Error, error) {
	var r refusalRow
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	return r.refusal(), nil
}

func newRefusalRow(e *telematics.Error) refusalRow {
	return refusalRow{
		Code: e.Code, Message: e.Message, Retryable: e.Retryable, RetryAfter: e.RetryAfter.Milliseconds(),
		Outcome: e.Outcome, Command: e.Command, Reason: e.Reason, Detail: e.Detail,
	}
}

func (r refusalRow) refusal() *telematics.Error {
	return &telematics.Error{
		Code: r.Code, Message: r.Message, Retryable: r.Retryable, RetryAfter: time.Duration(r.RetryAfter) * time.Millisecond,
		Outcome: r.Outcome, Command: r.Command, Reason: r.Reason, Detail: r.Detail,
	}
}
