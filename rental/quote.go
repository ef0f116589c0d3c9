package rental

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// QuoteFor is how long a quote is valid. Half: clients who add a card meanwhile need another one;
// double: a tariff that was corrected is charged as it was for longer.
const QuoteFor = 10 * time.Minute

// Quote is a price that a client was offered for a vehicle and a time. It does not reserve the
// vehicle.
type Quote struct {
	ID      uuid.UUID
	Booking Booking // that it would be: vehicle, time, price and plan
	Created time.Time
	Expires time.Time
}

// QuoteRequest is what a client wants the price of: a vehicle, or one of a category at a station.
type QuoteRequest struct {
	Agency     telematics.AgencyID
	Client     string // subject of its token
	Vehicle    telematics.VehicleID
	Category   string
	Station    telematics.StationID
	Start, End time.Time
	Now        time.Time
}

// Quote returns the price of a draft, by the facts about its vehicle. It fails as Book does, but
// needs neither a client nor its card.
func (d Draft) Quote(now time.Time, f Facts) (Quote, error) {
	d.Start, d.End = truncateToMillis(d.Start), truncateToMillis(d.End)
	for _, err := range []error{d.checkTimes(now, f), d.CheckVehicle(f)} {
		if err != nil {
			return Quote{}, err
		}
	}
	b, err := f.priced(Booking{VehicleID: d.Vehicle, Agency: d.Agency, Start: d.Start, End: d.End})
	if err != nil {
		return Quote{}, errTooExpensive
	}
	// A time that is over cannot be booked.
	return Quote{ID: uuid.New(), Booking: b, Created: now, Expires: truncateToMillis(earlier(now.Add(QuoteFor), b.End))}, nil
}

// ByQuote returns the draft with what it leaves to its quote. It fails with QuoteExpired, or with a
// *FieldError for a field that differs from the quote, and where the client has no such quote.
func (d Draft) ByQuote(now time.Time, f Facts) (Draft, error) {
	q := f.Quote
	if q == nil {
		return d, newFieldError("quote_id", "must be the id of a quote of this client")
	}
	b := q.Booking
	d.Vehicle = cmp.Or(d.Vehicle, b.VehicleID)
	d.Start, d.End = cmp.Or(truncateToMillis(d.Start), b.Start), cmp.Or(truncateToMillis(d.End), b.End)
	switch {
	case !now.Before(q.Expires), b.Price.Currency != f.Terms.Currency:
		return d, &telematics.Error{Code: QuoteExpired, Message: "The quote has expired; ask for another one."}
	case d.Vehicle != b.VehicleID:
		return d, newFieldError("vehicle_id", "must be that of the quote")
	case !d.Start.Equal(b.Start):
		return d, newFieldError("start_date", "must be that of the quote")
	case !d.End.Equal(b.End):
		return d, newFieldError("end_date", "must be that of the quote")
	}
	return d, nil
}
