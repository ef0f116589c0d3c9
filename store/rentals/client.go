package rentals

import (
	"context"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/settings"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Cards stores clients with their payment methods. It is safe for concurrent use.
type Cards struct{ DB *pg.DB }

// clientColumns are the fields of a rental.Client.
const clientColumns = `id, agency_id as agency, subject, coalesce(customer, '') as customer, customer_key as key,
	coalesce(default_payment_method_id, 0) as "default"`

// Client implements rental.Cards.
func (p Cards) Client(ctx context.Context, agency telematics.AgencyID, subject string) (rental.Client, error) {
	c, err := p.client(ctx, agency, subject)
	return c, unavailable.Wrap("read client", err)
}

func (p Cards) client(ctx context.Context, agency telematics.AgencyID, subject string) (rental.Client, error) {
	read := func() (found []rental.Client, err error) {
		err = p.DB.Pool.SelectContext(ctx, &found, `select `+clientColumns+` from clients where agency_id = $1 and subject = $2`,
			agency, subject)
		return found, err
	}
	found, err := read()
	if err == nil && len(found) == 0 {
		var installation string
		if installation, err = settings.Installation(ctx, p.DB); err != nil {
			return rental.Client{}, err
		}
		// The insert waits for a concurrent one of the same client, which is then read.
		if _, err = p.DB.Pool.ExecContext(ctx, `insert into clients (agency_id, subject, customer_key) values ($1, $2, $3)
			on conflict do nothing`,
			agency, subject, rental.CustomerKey(installation, agency, subject)); err == nil {
			found, err = read()
		}
	}
	if err != nil {
		return rental.Client{}, err
	}
	return found[0], nil // clients are never removed
}

// FindClients implements httpapi.Bookings. It takes upper and lower case for the same.
func (p Bookings) FindClients(ctx context.Context, agency telematics.AgencyID, text string, limit int) ([]rental.Client, error) {
	if !pg.Searchable(text) {
		return nil, nil
	}
	var clients []rental.Client
	err := p.DB.Lists.SelectContext(ctx, &clients, `select `+clientColumns+` from clients
		where ($1::bigint = 0 or agency_id = $1) and position(lower($2) in lower(subject)) > 0
		order by lower(subject), agency_id limit $3`, agency, text, limit)
	return clients, unavailable.Wrap("find clients", err)
}

// lockClient locks and returns the client. Until the transaction ends, no other one changes its
// payment methods.
func lockClient(ctx context.Context, tx *sqlx.Tx, id rental.ClientID) (c rental.Client, err error) {
	err = tx.GetContext(ctx, &c, `select `+clientColumns+` from clients where id = $1 for update`, id)
	return c, err
}

// SetCustomer implements rental.Cards.
func (p Cards) SetCustomer(ctx context.Context, id rental.ClientID, customer string) (c rental.Client, err error) {
	err = p.DB.Pool.GetContext(ctx, &c, `
		update clients set customer = coalesce(customer, $2) where id = $1 returning `+clientColumns, id, customer)
	return c, unavailable.Wrap("store a customer", err)
}
