package rental

import (
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

// Span returns the time for which vehicles are wanted. It fails with a *FieldError for one that
// cannot be booked.
func (q OfferQuery) Span(r Rules) (from, to time.Time, err error) {
	return checkSpan(q.From, q.To, q.Now, max(r.MinLength, MinLength))
}

func checkSpan(from, to, now time.Time, shortest time.Duration) (time.Time, time.Time, error) {
	if from.IsZero() {
		from = now
	}
	if to.IsZero() {
		to = from.Add(shortest)
	}
	from, to = truncateToMillis(from), truncateToMillis(to)
	switch {
	case from.Before(now.Add(-MaxLate)):
		return from, to, newFieldError("from", "must not be in the past")
	case !to.After(from):
		return from, to, newFieldError("to", "must be after from")
	case to.Sub(from) > MaxLength:
		return from, to, newFieldError("to", "must be at most 366 days after from")
	}
	return from, to, nil
}

// Candidate is a vehicle near a place, with the stored data that decides whether it is offered.
type Candidate struct {
	Vehicle      telematics.Vehicle
	Rate         *Rate
	Plan         *Plan
	Connectivity telematics.PresenceStatus
	NotOpened    bool // by a rule of its agency, no client may open it
	Taken        bool // by another booking in that time
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
	Terms   Terms
	Booking Booking // that it would be, without client and stations
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
// agency's, withdrawn, without a price, taken, not online, cannot be opened by clients, has little
// energy or a lit lamp of a critical fault, or is not what is wanted.
func (q OfferQuery) Offer(c Candidate, t Terms, from, to time.Time) (Offer, bool) {
	atLeast := func(is *int, least int) bool { return least == 0 || is != nil && *is >= least }
	low := c.Energy != nil && *c.Energy < t.Rules.MinEnergyPercent
	switch v := c.Vehicle; {
	case v.AgencyID != q.Agency, v.Withdrawn(), c.Rate == nil && c.Plan == nil, c.Taken, c.NotOpened, low,
		c.Connectivity != telematics.Online,
		slices.ContainsFunc(c.Lamps, func(lamp string) bool { return slices.Contains(criticalLamps, lamp) }),
		q.Category != "" && q.Category != v.Category,
		slices.ContainsFunc(q.Features, func(wanted string) bool { return !slices.Contains(v.Features, wanted) }),
		!atLeast(c.Energy, q.MinEnergyPercent), !atLeast(c.Range, q.MinRangeKm):
		return Offer{}, false
	}
	b, err := Facts{Terms: t, Rate: c.Rate, Plan: c.Plan}.priced(Booking{VehicleID: c.Vehicle.ID, Start: from, End: to})
	return Offer{Candidate: c, Terms: t, Booking: b}, err == nil
}

// Span is a time from which, and until which, a vehicle is free.
type Span struct{ From, To time.Time }

// FreeSpans returns the times between from and to that none of the spans covers. The spans may
// overlap, and are ordered by From.
func FreeSpans(from, to time.Time, taken []Span) []Span {
	free := []Span{}
	for _, s := range taken {
		if s.From.After(from) {
			free = append(free, Span{from, earlier(s.From, to)})
		}
		if from = later(from, s.To); !from.Before(to) {
			return free
		}
	}
	return append(free, Span{from, to})
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
