package commands

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/lib/pq"

	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// keyTaken is the constraint that an idempotency key in use violates.
const keyTaken = "idempotency_keys_pkey"

// isKeyTaken reports whether a statement failed, and did nothing, because its key is in use.
func isKeyTaken(err error) bool {
	refusal := pq.As(err)
	return refusal != nil && refusal.Constraint == keyTaken
}

// keyRow holds the columns of a key, without the id of its command or bulk.
type keyRow struct {
	AgencyID    int64  `json:"key_agency_id"`
	Subject     string `json:"key_subject"`
	Key         string `json:"key"`
	Fingerprint string `json:"key_fingerprint"` // hex
}

func newKeyRow(k *telematics.IdempotencyKey) *keyRow {
	if k == nil {
		return nil
	}
	return &keyRow{AgencyID: int64(k.Agency), Subject: k.Subject, Key: k.Key, Fingerprint: hex.EncodeToString(k.Fingerprint[:])}
}

// FindByKey implements broker.Commands. The state is durable. It frees a key whose command was not
// executed, or whose bulk has none.
func (s *Store) FindByKey(ctx context.Context, k telematics.IdempotencyKey) (delivery.KeyResult, bool, error) {
	made, found, err := s.selectByKey(ctx, k)
	return made, found, unavailable.Wrap("look for an idempotency key", err)
}

func (s *Store) selectByKey(ctx context.Context, k telematics.IdempotencyKey) (delivery.KeyResult, bool, error) {
	if !pg.Searchable(k.Subject, k.Key) {
		return delivery.KeyResult{}, false, nil
	}
	var fingerprint []byte
	var id *telematics.CommandID
	var made delivery.KeyResult
	var old bool
	found, err := pg.One(ctx, s.db.Prepared, []any{&fingerprint, &id, pg.OrZero(&made.Bulk), &old}, `
		select fingerprint, command_id, bulk_id, made_at <= `+idempotency.KeptSince+` as old
		from idempotency_keys
		where agency_id = $1 and subject = $2 and key = $3`,
		k.Agency, k.Subject, k.Key)
	if err != nil || !found {
		return delivery.KeyResult{}, false, err
	}
	if old {
		_, err := s.db.Pool.ExecContext(ctx, `
			delete from idempotency_keys
			where agency_id = $1 and subject = $2 and key = $3 and made_at <= `+idempotency.KeptSince,
			k.Agency, k.Subject, k.Key)
		return delivery.KeyResult{}, false, err
	}
	copy(made.Fingerprint[:], fingerprint)
	if id == nil {
		b, found, err := s.bulk(ctx, made.Bulk)
		if err != nil || !found || slices.ContainsFunc(b.Items, func(i telematics.BulkItem) bool { return i.Refusal == nil }) {
			return made, err == nil, err
		}
		_, err = s.db.Pool.ExecContext(ctx, `
			delete from idempotency_keys where agency_id = $1 and subject = $2 and key = $3 and bulk_id = $4`,
			k.Agency, k.Subject, k.Key, b.ID)
		return delivery.KeyResult{}, false, err
	}
	if made.Command, err = s.command(ctx, durable(recorded(`where id = $1`)), *id); err != nil {
		return delivery.KeyResult{}, false, err
	}
	if made.Command.State.Outcome() == telematics.NotExecuted {
		return delivery.KeyResult{}, false, s.free(ctx, *id)
	}
	return made, true, nil
}

// free frees the key of a command that was not executed, in case its settlement has not: an
// instance of an older version may have settled it. A settlement between our two reads has freed it
// already.
func (s *Store) free(ctx context.Context, id telematics.CommandID) error {
	_, err := s.db.Pool.ExecContext(ctx, `delete from idempotency_keys where command_id = $1`, id)
	return err
}
