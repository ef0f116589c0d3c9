package rentals

import (
	"context"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// AddedUnder implements rental.Cards.
func (p Cards) AddedUnder(ctx context.Context, id rental.ClientID, key telematics.IdempotencyKey) (rental.Added, bool, error) {
	earlier, err := idempotency.Find(ctx, p.DB.Pool, &key)
	if err != nil || earlier == nil {
		return rental.Added{}, false, unavailable.Wrap("look for an idempotency key", err)
	}
	added, err := addedBefore(ctx, p.DB.Pool, id, *earlier)
	return added, true, unavailable.Wrap("read what was added", err)
}

// addedBefore returns the payment method of an earlier request, in its present state, or the
// refusal of that request.
func addedBefore(ctx context.Context, db pg.Querier, id rental.ClientID, earlier idempotency.Names) (rental.Added, error) {
	added := rental.Added{Replayed: true}
	if earlier.Refusal != nil {
		return added, earlier.Refusal
	}
	var err error
	added.Method, err = methodNow(ctx, db, id, earlier.Method)
	return added, err
}

// KeepDecline implements rental.Cards.
func (p Cards) KeepDecline(ctx context.Context, key telematics.IdempotencyKey, decline *telematics.Error) error {
	err := retryTransaction(ctx, p.DB, func(tx *sqlx.Tx) error {
		_, err := idempotency.Take(ctx, tx, &key, idempotency.Names{Refusal: decline})
		return err
	})
	return unavailable.Wrap("keep a decline", err)
}

// AddMethod implements rental.Cards.
func (p Cards) AddMethod(ctx context.Context, a rental.Addition) (rental.Added, error) {
	var added rental.Added
	err := retryTransaction(ctx, p.DB, func(tx *sqlx.Tx) (err error) {
		if added, err = addMethod(ctx, tx, a); err != nil {
			return err
		}
		return keepAttached(ctx, tx, a.Client, added)
	})
	if isTokenTaken(err) {
		err = rental.InvalidMethod("it belongs to another customer", err)
	}
	return added, unavailable.Wrap("add a payment method", err)
}

func addMethod(ctx context.Context, tx *sqlx.Tx, a rental.Addition) (rental.Added, error) {
	client, err := lockClient(ctx, tx, a.Client)
	if err != nil {
		return rental.Added{}, err
	}
	if earlier, err := idempotency.Find(ctx, tx, a.Key); earlier != nil || err != nil {
		return repeatAddition(ctx, tx, a, earlier, err)
	}
	added, renewed, err := putCard(ctx, tx, a)
	if err != nil {
		return added, err
	}
	switch {
	case client.Default == 0, a.Default, renewed && added.Method.Default:
		if err := makeDefault(ctx, tx, &added.Method, renewed); err != nil {
			return added, err
		}
	}
	if renewed {
		// After the charges: other transactions lock a charge, and then the method that it names.
		if err := renewMethod(ctx, tx, added.Method); err != nil {
			return added, err
		}
	}
	if err := takeMethodKey(ctx, tx, a.Key, added.Method.ID); err != nil {
		return added, err
	}
	return added, addMethodEntry(ctx, tx, a.Activity, added.Method)
}

// repeatAddition returns the result of an earlier addition under the same key. The token of this
// request may be a different one for the same card, and is then returned as unused.
func repeatAddition(ctx context.Context, tx *sqlx.Tx, a rental.Addition, earlier *idempotency.Names, err error) (rental.Added, error) {
	if err != nil {
		return rental.Added{}, err
	}
	added, err := addedBefore(ctx, tx, a.Client, *earlier)
	if err != nil {
		return added, err
	}
	var recorded bool
	err = tx.GetContext(ctx, &recorded, `select exists (select from payment_methods where token = $1)`, a.Card.Token)
	if err == nil && !recorded {
		added.Unused = a.Card.Token
	}
	return added, err
}

// putCard finds the card among those of the client, or inserts it. renewed: the card has another
// expiry than the stored one.
func putCard(ctx context.Context, tx *sqlx.Tx, a rental.Addition) (added rental.Added, renewed bool, err error) {
	found, err := methodsWhere(ctx, tx, `m.client_id = $1 and (m.token = $2 or m.fingerprint = $3) order by m.token = $2 desc limit 1`,
		a.Client, a.Card.Token, pg.Nullable(a.Card.Fingerprint))
	if err != nil {
		return added, false, err
	}
	if len(found) == 0 {
		added.Method, err = insertMethod(ctx, tx, a)
		return added, false, err
	}
	added = rental.Added{Method: found[0], Existed: true}
	m := &added.Method
	if m.ExpMonth == a.Card.ExpMonth && m.ExpYear == a.Card.ExpYear {
		if m.Token != a.Card.Token {
			added.Unused = a.Card.Token
		}
		return added, false, nil
	}
	if m.Token != a.Card.Token {
		added.Unused = m.Token
	}
	m.Token, m.ExpMonth, m.ExpYear = a.Card.Token, a.Card.ExpMonth, a.Card.ExpYear
	return added, true, nil
}

func renewMethod(ctx context.Context, tx *sqlx.Tx, m rental.Method) error {
	_, err := tx.ExecContext(ctx, `update payment_methods set token = $2, exp_month = $3, exp_year = $4 where id = $1`,
		m.ID, m.Token, m.ExpMonth, m.ExpYear)
	return err
}

func insertMethod(ctx context.Context, tx *sqlx.Tx, a rental.Addition) (rental.Method, error) {
	var count int
	if err := tx.GetContext(ctx, &count, `select count(*) from payment_methods where client_id = $1`, a.Client); err != nil {
		return rental.Method{}, err
	}
	if count >= rental.MaxMethods {
		return rental.Method{}, rental.TooManyMethods()
	}
	m := rental.Method{Client: a.Client, Card: a.Card, Created: pg.Deref(pg.Timestamp(a.Now))}
	err := tx.GetContext(ctx, &m.ID, `
		insert into payment_methods (client_id, token, brand, last_four, exp_month, exp_year, fingerprint, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		returning id`,
		a.Client, a.Card.Token, a.Card.Brand, a.Card.LastFour, a.Card.ExpMonth, a.Card.ExpYear, pg.Nullable(a.Card.Fingerprint), m.Created)
	return m, err
}
