package rental

import (
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

// OfferQuery selects vehicles that a client can book itself for a time, by their distance from a
// place. Zero fields select everything.
type OfferQuery struct {
	Agency   telematics.AgencyID
	Near     telematics.Position
	Station  telematics.StationID // only vehicles that stand there; without Near, it is the place
	HasNear  bool
	Radius   int64     // metres around Near, unless a station is named
	From, To time.Time // zero: now, and the agency's shortest time later
	Category string
	Features []string // all of them
	// Vehicles that do not report it are left out, unless it is zero.
	MinEnergyPercent, MinRangeKm int

	After OfferMark // the last offer of the page before; zero: none
	Limit int
	Now   time.Time
}

// OfferMark is the place of an offer in a list.
type OfferMark struct {
	Metres  int64
	Vehicle telematics.VehicleID
}

// Span returns the time for which vehicles are wanted.
func (q OfferQuery) Span(r Rules) Span {
	s := Span{q.From, q.To}
	if s.From.IsZero() {
		s.From = q.Now
	}
	if s.To.IsZero() {
		s.To = s.From.Add(r.Shortest())
	}
	return Span{truncateToMillis(s.From), truncateToMillis(s.To)}
}

// Shortest returns the shortest time for which a client can book.
func (r Rules) Shortest() time.Duration { return max(r.MinLength.Duration(), MinLength) }

// Candidate is a vehicle near a place, with the stored data that decides whether it is offered.
type Candidate struct {
	Facts        // Terms, and those about the vehicle
	Connectivity telematics.PresenceStatus
	Energy       *int // percent, rounded down; nil: not reported
	Range        *int // km, likewise
	Lamps        []string
	Position     telematics.Position // rounded as its agency wants
	Metres       int64
}

// Offer is a vehicle that a client can book for a time, and what it then costs.
type Offer struct {
	Candidate
	Station *telematics.Station // where it stands; nil: at none
	Booking Booking             // that it would be, without client and stations
}

// Mark returns the place of the offer in its list.
func (o Offer) Mark() OfferMark { return OfferMark{o.Metres, o.Vehicle.ID} }

// criticalLamps are the warning lamps with which a vehicle is not offered, as units report them.
// Others do not keep it from being driven, nor do trouble codes: they stay stored after a repair,
// and most are about emissions.
var criticalLamps = []string{
	"airbag_failure", "brake_failure", "brake_fluid", "coolant_temperature", "engine_overheating", "engine_stop", "high_voltage_failure",
	"oil_pressure", "power_steering", "steering_failure", "stop", "tire_failure", "tyre_failure",
}

// Offer returns the offer of a candidate for a time. It returns false if the vehicle is another
// agency's, withdrawn, without a price, taken, not online, cannot be opened or returned by clients,
// has little energy or a lit lamp of a critical fault, or is not what is wanted.
func (q OfferQuery) Offer(c Candidate, s Span) (Offer, bool) {
	atLeast := func(is *int, least int) bool { return least == 0 || is != nil && *is >= least }
	low := c.Energy != nil && *c.Energy < c.Terms.Rules.MinEnergyPercent
	switch v := c.Vehicle; {
	case low, c.Connectivity != telematics.Online, (Draft{Self: true, Agency: q.Agency, Vehicle: v.ID}).CheckVehicle(c.Facts) != nil,
		slices.ContainsFunc(c.Lamps, func(lamp string) bool { return slices.Contains(criticalLamps, lamp) }),
		q.Category != "" && q.Category != v.Category,
		slices.ContainsFunc(q.Features, func(wanted string) bool { return !slices.Contains(v.Features, wanted) }),
		!atLeast(c.Energy, q.MinEnergyPercent), !atLeast(c.Range, q.MinRangeKm):
		return Offer{}, false
	}
	b, err := c.priced(Booking{VehicleID: c.Vehicle.ID, Start: s.From, End: s.To})
	return Offer{Candidate: c, Booking: b}, err == nil
}

// Span is a time from which, and until which, a vehicle is wanted, or free.
type Span struct{ From, To time.Time }

// Check fails with a *FieldError of one of two fields for a time that cannot be booked, or is
// shorter than the shortest one.
func (s Span) Check(now time.Time, shortest time.Duration, from, to string) error {
	switch {
	case s.From.Before(now.Add(-MaxLate)):
		return newFieldError(from, "must not be in the past")
	case !s.To.After(s.From):
		return newFieldError(to, "must be after "+from)
	case !s.To.After(now):
		return newFieldError(to, "must not be in the past")
	case s.To.Sub(s.From) < shortest:
		return newFieldError(to, fmt.Sprintf("must be at least %s after %s", telematics.Words(shortest), from))
	case s.To.Year() > 9999: // RFC 3339 has no such year
		return newFieldError(to, "must be before the year 10000")
	case s.To.Sub(s.From) > MaxLength:
		return newFieldError(to, fmt.Sprintf("must be at most %d days after %s", MaxLength/(24*time.Hour), from))
	}
	return nil
}

// Without returns the parts of the time that none of the spans covers. The spans may overlap, and
// are ordered by From.
func (s Span) Without(taken []Span) []Span {
	free := []Span{}
	for _, t := range taken {
		if t.From.After(s.From) {
			free = append(free, Span{s.From, earlier(t.From, s.To)})
		}
		if s.From = later(s.From, t.To); !s.From.Before(s.To) {
			return free
		}
	}
	return append(free, s)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
