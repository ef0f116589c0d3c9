package rentals

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// quoteRow is the JSON of a quote.
type quoteRow struct {
	Vehicle telematics.VehicleID `json:"vehicle"`
	Start   time.Time            `json:"start"`
	End     time.Time            `json:"end"`
	Created time.Time            `json:"created"`
	Price   rental.Price         `json:"price"`
	Plan    *rental.Plan         `json:"plan,omitempty"`
}

// Quote stores and returns the price of a vehicle for a time: of the named one, or of the one
// nearest to the station that is free and has the category. It fails as rental.Draft.Quote does,
// and with rental.VehicleNotAvailable where the vehicle is booked, or none of the category is free.
func (p Bookings) Quote(ctx context.Context, r rental.QuoteRequest) (rental.Quote, error) {
	quote, err := p.quote(ctx, r)
	return quote, unavailable.Wrap("quote", err)
}

func (p Bookings) quote(ctx context.Context, r rental.QuoteRequest) (quote rental.Quote, err error) {
	if r.Vehicle == 0 {
		offers, _, err := p.findOffers(ctx, rental.OfferQuery{
			Agency: r.Agency, Station: r.Station, Category: r.Category, From: r.Start, To: r.End, Limit: 1, Now: r.Now,
		}, "start_date", "end_date")
		if err != nil {
			return rental.Quote{}, err
		}
		if len(offers) == 0 {
			return rental.Quote{}, rental.NotAvailable("No vehicle of this category is free at the station in that time.")
		}
		r.Vehicle = offers[0].Vehicle.ID
	}
	err = retryTransaction(ctx, p.DB, func(tx *sqlx.Tx) error {
		quote, err = makeQuote(ctx, tx, r)
		return err
	})
	return quote, err
}

func makeQuote(ctx context.Context, tx *sqlx.Tx, r rental.QuoteRequest) (rental.Quote, error) {
	draft := rental.Draft{Self: true, Agency: r.Agency, Client: r.Client, Vehicle: r.Vehicle, Start: r.Start, End: r.End}
	terms, err := readTerms(ctx, tx, r.Agency)
	if err != nil {
		return rental.Quote{}, err
	}
	facts := rental.Facts{Terms: terms}
	if err := readVehicle(ctx, tx, draft, "", &facts); err != nil {
		return rental.Quote{}, err
	}
	if err := readTaken(ctx, tx, draft, r.Now, &facts); err != nil {
		return rental.Quote{}, err
	}
	q, err := draft.Quote(r.Now, facts)
	if err != nil {
		return rental.Quote{}, err
	}
	b := q.Booking
	_, err = tx.ExecContext(ctx, `insert into quotes (id, agency_id, subject, quote, expires_at) values ($1, $2, $3, $4, $5)`,
		q.ID, r.Agency, r.Client, pg.JSON(quoteRow{b.VehicleID, b.Start, b.End, q.Created, b.Price, b.Plan}), pg.Timestamp(q.Expires))
	return q, err
}

// FindFree implements httpapi.Bookings.
func (p Bookings) FindFree(ctx context.Context, agency telematics.AgencyID, at rental.Span, now time.Time) ([]rental.Booking, error) {
	rows, err := pg.Read(ctx, p.DB.Lists, (*pricedRow).fields, pg.Itself, selectPriced+`
		where ($1::bigint = 0 or v.agency_id = $1) and not `+isTaken(`v.id`, `$2::timestamptz`, `$3::timestamptz`, `$4::timestamptz`)+`
		order by v.id`, agency, pg.Timestamp(at.From), pg.Timestamp(at.To), pg.Timestamp(now.Add(rental.MaxLate)))
	if err != nil {
		return nil, unavailable.Wrap("read which vehicles are free", err)
	}
	var free []rental.Booking
	for _, row := range rows {
		facts := rental.Facts{Terms: rental.Terms{Currency: row.currency, Tax: row.tax}}
		if err := row.read(&facts); err != nil {
			return nil, err
		}
		of := facts.Vehicle
		q, err := rental.Draft{Agency: of.AgencyID, Vehicle: of.ID, Start: at.From, End: at.To}.Quote(now, facts)
		if err == nil {
			free = append(free, q.Booking)
		}
	}
	return free, nil
}

// readQuote returns the quote that a draft names; nil: its client has none with the id.
func readQuote(ctx context.Context, tx *sqlx.Tx, draft rental.Draft) (*rental.Quote, error) {
	var row struct {
		Quote   []byte    `db:"quote"`
		Expires time.Time `db:"expires_at"`
	}
	err := tx.GetContext(ctx, &row, `select quote, expires_at from quotes where id = $1 and agency_id = $2 and subject = $3`,
		draft.QuoteID, draft.Agency, draft.Client)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var stored quoteRow
	if err := json.Unmarshal(row.Quote, &stored); err != nil {
		return nil, fmt.Errorf("decode quote %s: %w", draft.QuoteID, err)
	}
	return &rental.Quote{
		ID: draft.QuoteID, Created: stored.Created, Expires: row.Expires.UTC(), Booking: rental.Booking{
			Agency: draft.Agency, VehicleID: stored.Vehicle, Start: stored.Start, End: stored.End, Price: stored.Price, Plan: stored.Plan,
		},
	}, nil
}

// ForgetQuotes removes quotes that expired long ago, up to limit of them, and reports whether there
// may be others.
func ForgetQuotes(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	return db.Forget(ctx, "forget quotes", `
		delete from quotes
		where id in (
			select id from quotes where expires_at <= now() - `+pg.Interval(quotesKept)+`
			order by expires_at limit $1 for update skip locked)`, limit)
}
