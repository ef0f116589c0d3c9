package rentals

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// detachSoon is when a card that was removed is detached by whichever instance comes first, if the
// one that removed it has not done so. Half: both do it where the processor is slow. Double: a card
// stays attached for longer after a crash.
const detachSoon = time.Minute

// DetachLater implements rental.Cards.
func (p Cards) DetachLater(ctx context.Context, client rental.ClientID, token string, after time.Duration) error {
	if !pg.Searchable(token) {
		return nil // the processor knows no such card
	}
	return unavailable.Wrap("store a card to detach", p.DB.Within(ctx, func(tx *sqlx.Tx) error {
		return detachLater(ctx, tx, client, token, after)
	}))
}

func detachLater(ctx context.Context, tx *sqlx.Tx, client rental.ClientID, token string, after time.Duration) error {
	_, err := tx.ExecContext(ctx, `
		insert into detachments (token, client_id, due_at) values ($1, $2, clock_timestamp() + $3 * interval '1 microsecond')
		-- another client can name any token
		on conflict (token) do update set due_at = excluded.due_at
		where detachments.client_id = excluded.client_id`, token, client, after.Microseconds())
	return err
}

// keepAttached removes a card that is a payment method now from those to be detached, and adds the
// one that it replaces.
func keepAttached(ctx context.Context, tx *sqlx.Tx, client rental.ClientID, added rental.Added) error {
	if _, err := tx.ExecContext(ctx, `delete from detachments where token = $1`, added.Method.Token); err != nil || added.Unused == "" {
		return err
	}
	return detachLater(ctx, tx, client, added.Unused, detachSoon)
}

// TakeDetachments implements rental.Cards.
func (p Cards) TakeDetachments(ctx context.Context, limit int, again time.Duration) (due []rental.Detachment, err error) {
	err = p.DB.Within(ctx, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `delete from detachments d using payment_methods m where m.token = d.token
			and d.due_at <= now()`); err != nil {
			return err
		}
		due = nil
		return tx.SelectContext(ctx, &due, `
			with due as (
				select token from detachments where due_at <= now() order by due_at limit $1 for update skip locked
			)
			update detachments d set due_at = clock_timestamp() + $2 * interval '1 microsecond'
			from due, clients c
			where d.token = due.token and c.id = d.client_id
			returning d.client_id as client, coalesce(c.customer, '') as customer, d.token`, limit, again.Microseconds())
	})
	return due, unavailable.Wrap("take cards to detach", err)
}

// Detached implements rental.Cards.
func (p Cards) Detached(ctx context.Context, token string) error {
	_, err := p.DB.Pool.ExecContext(ctx, `delete from detachments where token = $1`, token)
	return unavailable.Wrap("store that a card is detached", err)
}
