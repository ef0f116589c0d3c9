package rentals

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// methodsWhere returns payment methods m of clients c that meet a condition, each with whether it
// is the client's default.
func methodsWhere(ctx context.Context, db pg.Querier, where string, args ...any) (methods []rental.Method, err error) {
	err = db.SelectContext(ctx, &methods, `
		select m.id, m.client_id as client, m.token, m.brand, m.last_four as lastfour, m.exp_month as expmonth, m.exp_year as expyear,
			coalesce(m.fingerprint, '') as fingerprint, m.created_at as created,
			m.id is not distinct from c.default_payment_method_id as "default"
		from payment_methods m join clients c on c.id = m.client_id
		where `+where, args...)
	return methods, err
}

// Methods implements rental.Cards.
func (p Cards) Methods(ctx context.Context, id rental.ClientID) ([]rental.Method, error) {
	methods, err := methodsWhere(ctx, p.DB.Pool, `m.client_id = $1 order by m.id desc`, id)
	return methods, unavailable.Wrap("read payment methods", err)
}

// ClientMethods implements httpapi.Bookings.
func (p Bookings) ClientMethods(ctx context.Context, agency telematics.AgencyID, subject string) ([]rental.Method, error) {
	if !pg.Searchable(subject) {
		return nil, nil
	}
	methods, err := methodsWhere(ctx, p.DB.Lists, `c.agency_id = $1 and c.subject = $2 order by m.id desc`, agency, subject)
	return methods, unavailable.Wrap("read payment methods", err)
}

// methodNow reads a payment method of the client, or fails with rental.NoSuchMethod.
func methodNow(ctx context.Context, db pg.Querier, client rental.ClientID, id rental.MethodID) (rental.Method, error) {
	found, err := methodsWhere(ctx, db, `m.client_id = $1 and m.id = $2`, client, id)
	if err != nil {
		return rental.Method{}, err
	}
	if len(found) == 0 {
		return rental.Method{}, rental.NoSuchMethod(id)
	}
	return found[0], nil
}

// RemoveMethod implements rental.Cards.
func (p Cards) RemoveMethod(
	ctx context.Context, id rental.ClientID, method rental.MethodID, entry telematics.Activity,
) (rental.Method, error) {
	var removed rental.Method
	err := retryTransaction(ctx, p.DB, func(tx *sqlx.Tx) error {
		if _, err := lockClient(ctx, tx, id); err != nil {
			return err
		}
		m, err := methodNow(ctx, tx, id, method)
		if err != nil {
			return err
		}
		if m.Default {
			return rental.IsDefault()
		}
		used, err := isInUse(ctx, tx, id, method)
		if err != nil {
			return err
		}
		if used {
			return rental.InUse()
		}
		removed = m
		if err := detachLater(ctx, tx, id, m.Token, detachSoon); err != nil {
			return err
		}
		return deleteMethod(ctx, tx, m, entry)
	})
	return removed, unavailable.Wrap("remove a payment method", err)
}

// isInUse reports whether an active booking is to be paid with a method, a payment of a booking
// that has not ended is being made with it, or a worker has leased a charge that may be tried with
// it: that worker has the card in memory. The method's row is locked first, so that a concurrent
// transaction that chooses it for a charge comes before this one, or finds it removed.
func isInUse(ctx context.Context, tx *sqlx.Tx, client rental.ClientID, method rental.MethodID) (bool, error) {
	if _, err := tx.ExecContext(ctx, `select from payment_methods where id = $1 for update`, method); err != nil {
		return false, err
	}
	var used bool
	err := tx.GetContext(ctx, &used, `
		select exists (select from bookings where payment_method_id = $1 and state = 'active')
			or exists (
				select from bookings b join charges c on c.booking_id = b.id
				where b.client_id = $2 and c.kind <> 'refund'
					and coalesce(c.payment_method_id, b.payment_method_id, $1) = $1 -- else it is another card's
					and (c.lease_until > clock_timestamp()
						or c.payment_method_id = $1 and b.state in ('upcoming', 'active') and not c.hard
							and c.state not in ('failed', 'paid', 'captured', 'released', 'waived')))`,
		method, client)
	return used, err
}

func deleteMethod(ctx context.Context, tx *sqlx.Tx, m rental.Method, entry telematics.Activity) error {
	if err := barCard(ctx, tx, m.ID); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `delete from payment_methods where id = $1`, m.ID); err != nil {
		return err
	}
	return addMethodEntry(ctx, tx, entry, m)
}

// SetDefault implements rental.Cards.
func (p Cards) SetDefault(
	ctx context.Context, id rental.ClientID, method rental.MethodID, entry telematics.Activity, key *telematics.IdempotencyKey,
) (rental.Method, bool, error) {
	var m rental.Method
	var replayed bool
	err := retryTransaction(ctx, p.DB, func(tx *sqlx.Tx) error {
		if _, err := lockClient(ctx, tx, id); err != nil {
			return err
		}
		earlier, err := idempotency.Find(ctx, tx, key)
		if err != nil {
			return err
		}
		if m, err = methodNow(ctx, tx, id, method); err != nil {
			return err
		}
		if replayed = earlier != nil; replayed {
			return nil
		}
		if err := makeDefault(ctx, tx, &m, false); err != nil {
			return err
		}
		if err := takeMethodKey(ctx, tx, key, m.ID); err != nil {
			return err
		}
		return addMethodEntry(ctx, tx, entry, m)
	})
	return m, replayed, unavailable.Wrap("set the default payment method", err)
}

// takeMethodKey stores an idempotency key for a payment method. The key was free when the client
// was locked, and a repetition of the same request waits for that lock, so a key that is in use now
// was stored without it.
func takeMethodKey(ctx context.Context, tx *sqlx.Tx, key *telematics.IdempotencyKey, m rental.MethodID) error {
	earlier, err := idempotency.Take(ctx, tx, key, idempotency.Names{Method: m})
	if err == nil && earlier != nil { // a decline of the same card, at the same moment
		err = telematics.StillOpen(telematics.NoCommand)
	}
	return err
}

// makeDefault makes a method its client's default. renewed: its card has another expiry than
// before.
func makeDefault(ctx context.Context, tx *sqlx.Tx, m *rental.Method, renewed bool) error {
	if _, err := tx.ExecContext(ctx, `update clients set default_payment_method_id = $2 where id = $1`, m.Client, m.ID); err != nil {
		return err
	}
	m.Default = true
	return reviveCharges(ctx, tx, m.Client, m.ID, renewed)
}

// DropCard implements rental.Cards.
func (p Cards) DropCard(ctx context.Context, token string, entry telematics.Activity) error {
	err := p.withCard(ctx, token, func(tx *sqlx.Tx, client rental.Client, m rental.Method) error {
		entry.Agency = client.Agency
		if m.Default {
			if err := passDefault(ctx, tx, m); err != nil {
				return err
			}
		}
		return deleteMethod(ctx, tx, m, entry)
	})
	return unavailable.Wrap("drop a card", err)
}

// passDefault makes the client's newest other method the default; where there is none, the client
// has no default.
func passDefault(ctx context.Context, tx *sqlx.Tx, m rental.Method) error {
	others, err := methodsWhere(ctx, tx, `m.client_id = $1 and m.id <> $2 order by m.id desc limit 1`, m.Client, m.ID)
	if err != nil {
		return err
	}
	if len(others) == 0 {
		_, err := tx.ExecContext(ctx, `update clients set default_payment_method_id = null where id = $1`, m.Client)
		return err
	}
	return makeDefault(ctx, tx, &others[0], false)
}

// RefreshCard implements rental.Cards.
func (p Cards) RefreshCard(ctx context.Context, card rental.Card) error {
	err := p.withCard(ctx, card.Token, func(tx *sqlx.Tx, _ rental.Client, m rental.Method) error {
		_, err := tx.ExecContext(ctx, `
			update payment_methods m
			set brand = $2, last_four = $3, exp_month = $4, exp_year = $5,
				fingerprint = case when exists (
					select from payment_methods other where other.client_id = m.client_id and other.id <> m.id and other.fingerprint = $6
				) then m.fingerprint else coalesce($6, m.fingerprint) end
			where id = $1`,
			m.ID, card.Brand, card.LastFour, card.ExpMonth, card.ExpYear, pg.Nullable(card.Fingerprint))
		return err
	})
	return unavailable.Wrap("refresh a card", err)
}

// withCard locks the client of the payment method with a token, and calls change. Where there is no
// such method, it does nothing.
func (p Cards) withCard(ctx context.Context, token string, change func(*sqlx.Tx, rental.Client, rental.Method) error) error {
	if !pg.Searchable(token) {
		return nil
	}
	return retryTransaction(ctx, p.DB, func(tx *sqlx.Tx) error {
		var clients []int64
		if err := tx.SelectContext(ctx, &clients, `select client_id from payment_methods where token = $1`, token); err != nil ||
			len(clients) == 0 {
			return err
		}
		client, err := lockClient(ctx, tx, rental.ClientID(clients[0]))
		if err != nil {
			return err
		}
		found, err := methodsWhere(ctx, tx, `m.client_id = $1 and m.token = $2`, client.ID, token)
		if err != nil || len(found) == 0 { // gone while the client was waited for
			return err
		}
		return change(tx, client, found[0])
	})
}

// addMethodEntry adds the audit log entry about a payment method, with the parts of the card that
// may be shown.
func addMethodEntry(ctx context.Context, tx *sqlx.Tx, entry telematics.Activity, m rental.Method) error {
	entry.Outcome = telematics.Executed
	entry.Details = map[string]any{
		"payment_method_id": int64(m.ID), "brand": m.Brand, "last_four": m.LastFour, "exp_month": m.ExpMonth, "exp_year": m.ExpYear,
		"is_default": m.Default,
	}
	return activity.Insert(ctx, tx, entry)
}

// tokenTaken is the constraint that is violated by a token of another client.
const tokenTaken = "payment_methods_token_unique"

func isTokenTaken(err error) bool {
	refusal := pq.As(err)
	return refusal != nil && refusal.Constraint == tokenTaken
}
