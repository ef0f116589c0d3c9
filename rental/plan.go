package rental

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plan is what the vehicles of a category cost at an agency, in one version: a tariff in the words
// of the interface. Amounts are without tax, in the agency's currency. A booking keeps the plan by
// which it was made. Its JSON is that of the store, with amounts in minor units.
type Plan struct {
	Category string `json:"category"` // of vehicles; empty: of those whose category has no tariff
	Version  int    `json:"version"`
	// Time is charged by started minutes. Hour and Day are what an hour and a day cost at most;
	// zero: no cap. With a Minute of zero, started hours are charged, and with an Hour of zero,
	// too, days.
	Minute Minor `json:"minute"`
	Hour   Minor `json:"hour"`
	Day    Minor `json:"day"`
	// Kilometre is what each started kilometre costs beyond those included in each started day.
	Kilometre  Minor `json:"kilometre"`
	IncludedKm int   `json:"included_km"`
	// PauseMinute is charged instead of Minute while the rental is paused; zero: as if it was not.
	PauseMinute Minor `json:"pause_minute"`
	// ReserveMinute is what a minute between reservation and start costs, after FreeReserve.
	ReserveMinute Minor   `json:"reserve_minute"`
	FreeReserve   Minutes `json:"free_reserve_minutes"`
	Minimum       Minor   `json:"minimum"` // of a rental
	Deposit       Minor   `json:"deposit"`
	// PluggedIn: a vehicle must be plugged in when it is returned.
	PluggedIn bool `json:"plugged_in"`
}

// DefaultCategory is the name of the empty category: of vehicles whose category has no tariff.
const DefaultCategory = "default"

// Minutes is a duration in whole minutes, also in JSON.
type Minutes int64

// Duration returns the duration.
func (m Minutes) Duration() time.Duration { return time.Duration(m) * time.Minute }

// Usage is what is known of a rental when it is priced.
type Usage struct {
	Reserved time.Duration // how long its client had the vehicle reserved before the start
	Time     time.Duration // from start to end, pauses included
	Paused   time.Duration
	Metres   int64 // 0: not known, and not charged
}

// Line is a part of a price.
type Line struct {
	Kind     LineKind
	Quantity Hundredths
	Unit     LineUnit // empty: the amount alone
	Rate     Minor    // of a unit
	Amount   Minor
}

// LineKind is what a line of a price is for.
type LineKind string

// What the lines of a price are for, in their order.
const (
	ReservationLine LineKind = "reservation"
	TimeLine        LineKind = "time"
	PauseLine       LineKind = "pause"
	DistanceLine    LineKind = "distance"
	MinimumLine     LineKind = "minimum" // what is missing to the minimum of the tariff
	TaxLine         LineKind = "tax"
)

// LineUnit is a unit that has a rate.
type LineUnit string

// Units of lines.
const (
	PerMinute    LineUnit = "minute"
	PerHour      LineUnit = "hour"
	PerDay       LineUnit = "day"
	PerKilometre LineUnit = "km"
)

// Price returns the price of a rental, and its lines: their amounts are the subtotal, and that of
// the last one, the tax on it. Everything but the tax is a whole number of units at a whole rate:
// only the tax is rounded, once, half up. A day is 24 hours, also when clocks change.
//
// Hours of the price are the length of the rental, rounded half up to two decimals, and HourlyRate
// is what the first hour costs: they describe the price, and do not determine it. It fails where
// the rental is more than MaxAmount.
func (p Plan) Price(c Currency, tax TaxRate, u Usage) (Price, []Line, error) {
	u.Time = max(0, u.Time)
	lines := slices.Concat(p.reservation(u.Reserved), p.timeLines(u), p.distance(u))
	subtotal := sum(lines)
	if missing := p.Minimum - subtotal; missing > 0 {
		lines = append(lines, Line{Kind: MinimumLine, Amount: missing})
		subtotal = p.Minimum
	}
	due := Minor(divideHalfUp(product(int64(subtotal), int64(tax)), int64(FullTax)).Int64())
	if subtotal > MaxAmount-due {
		return Price{}, nil, errPriceRange
	}
	hours := divideHalfUp(product(u.Time.Milliseconds(), 100), int64(time.Hour/time.Millisecond)).Int64()
	price := Price{
		Tariff: Tariff{Currency: c, HourlyRate: sum(spend(p.spans(), minutesOf(time.Hour))), Tax: tax, Deposit: p.Deposit},
		Hours:  Hundredths(hours), Subtotal: subtotal, TaxDue: due,
	}
	return price, append(lines, Line{Kind: TaxLine, Amount: due}), nil
}

// reservation prices the started minutes of a reservation beyond the free ones.
func (p Plan) reservation(reserved time.Duration) []Line {
	return units(ReservationLine, started(reserved-p.FreeReserve.Duration(), time.Minute), PerMinute, p.ReserveMinute)
}

// timeLines prices the started minutes of the rental. Whole minutes of pauses have the rate of
// pauses, unless the rental is cheaper without them.
func (p Plan) timeLines(u Usage) []Line {
	all, paused := started(u.Time, time.Minute), minutesOf(min(u.Time, u.Paused))
	lines := spend(p.spans(), all)
	if pauses := units(PauseLine, paused, PerMinute, p.PauseMinute); len(pauses) > 0 {
		if apart := append(spend(p.spans(), all-paused), pauses...); sum(apart) < sum(lines) {
			return apart
		}
	}
	return lines
}

// distance prices the started kilometres beyond those included.
func (p Plan) distance(u Usage) []Line {
	const day, kilometre = 24 * time.Hour, 1000
	included := int64(p.IncludedKm) * max(1, started(u.Time, day))
	driven := u.Metres / kilometre
	if u.Metres%kilometre > 0 {
		driven++
	}
	return units(DistanceLine, driven-included, PerKilometre, p.Kilometre)
}

// span is a length of time that has a price.
type span struct {
	unit    LineUnit
	minutes int64
	rate    Minor
}

// spans returns the spans of the plan, longest first. Each is cheaper than its time in the next
// one: a cap that is never reached is none.
func (p Plan) spans() (list []span) {
	for _, s := range []span{
		{PerMinute, 1, p.Minute}, {PerHour, minutesOf(time.Hour), p.Hour}, {PerDay, minutesOf(24 * time.Hour), p.Day},
	} {
		if s.rate > 0 && (len(list) == 0 || s.rate < times(s.minutes/list[0].minutes, list[0].rate)) {
			list = slices.Insert(list, 0, s)
		}
	}
	return list
}

// Limits reports whether an hour and a day are ever reached as prices of time.
func (p Plan) Limits() (hour, day bool) {
	for _, s := range p.spans() {
		hour, day = hour || s.unit == PerHour, day || s.unit == PerDay
	}
	return hour, day
}

// spend prices a number of minutes: as many of the longest span as fit, and the rest in shorter
// ones, up to the price of one more.
func spend(spans []span, minutes int64) []Line {
	if len(spans) == 0 {
		return nil
	}
	first, n := spans[0], minutes/spans[0].minutes
	var below []Line
	if rest := minutes % first.minutes; rest > 0 {
		if below = spend(spans[1:], rest); below == nil || sum(below) >= first.rate {
			below, n = nil, n+1
		}
	}
	return append(units(TimeLine, n, first.unit, first.rate), below...)
}

// units returns the line of a number of units at a rate; none if it costs nothing.
func units(kind LineKind, n int64, unit LineUnit, rate Minor) []Line {
	if n <= 0 || rate == 0 {
		return nil
	}
	return []Line{{Kind: kind, Quantity: Hundredths(100 * n), Unit: unit, Rate: rate, Amount: times(n, rate)}}
}

// tooMuch is an amount that no price has. It is so small that sums of it cannot overflow.
const tooMuch = MaxAmount + 1

// times returns n times a rate that is not 0, and tooMuch where it is more than MaxAmount.
func times(n int64, rate Minor) Minor {
	if Minor(n) > MaxAmount/rate {
		return tooMuch
	}
	return Minor(n) * rate
}

func sum(lines []Line) (all Minor) {
	for _, l := range lines {
		all += l.Amount
	}
	return all
}

// started returns how many units have begun.
func started(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/unit) + 1
}

func minutesOf(d time.Duration) int64 { return int64(d / time.Minute) }

// Words describes the plan to people, in one sentence without a full stop: 0.30 EUR a minute, at
// most 12.00 EUR an hour and 79.00 EUR a day.
func (p Plan) Words(c Currency) string {
	money := func(m Minor) string { return c.Format(m) + " " + string(c) }
	articles := map[LineUnit]string{PerMinute: " a minute", PerHour: " an hour", PerDay: " a day"}
	var parts, caps []string
	spans := p.spans()
	for i, s := range slices.Backward(spans) {
		if text := money(s.rate) + articles[s.unit]; i == len(spans)-1 {
			parts = append(parts, text)
		} else {
			caps = append(caps, text)
		}
	}
	if len(caps) > 0 {
		parts = append(parts, "at most "+strings.Join(caps, " and "))
	}
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.PauseMinute > 0, "%s a minute while it is paused", money(p.PauseMinute))
	add(p.ReserveMinute > 0, "%s a minute of reservation after %d minutes", money(p.ReserveMinute), p.FreeReserve)
	add(p.Kilometre > 0 && p.IncludedKm > 0, "%d km a day included, then %s a km", p.IncludedKm, money(p.Kilometre))
	add(p.Kilometre > 0 && p.IncludedKm == 0, "%s a km", money(p.Kilometre))
	add(p.Minimum > 0, "%s at least", money(p.Minimum))
	add(p.Deposit > 0, "a deposit of %s", money(p.Deposit))
	add(p.PluggedIn, "to be returned plugged in")
	return strings.Join(parts, ", ")
}

// over returns the price of the booked time: by the plan of the booking, else by its hourly rate.
func (b Booking) over(end time.Time) (Price, error) {
	if b.Plan == nil {
		return b.Price.Over(b.Start, end)
	}
	price, _, err := b.Plan.Price(b.Price.Currency, b.Price.Tax, Usage{Time: end.Sub(b.Start)})
	return price, err
}

// used returns the usage of a rental that began, and ends at a time.
func (b Booking) used(end time.Time) Usage {
	u := Usage{
		Reserved: b.ActualStart.Sub(later(later(b.Start, b.Created), b.FreeSince)),
		Time:     end.Sub(b.ActualStart), Paused: b.PausedFor, Metres: b.driven(end),
	}
	if !b.PausedSince.IsZero() {
		u.Paused += max(0, end.Sub(b.PausedSince))
	}
	return u
}

// An odometer that says more than fastest, in metres a second, counts something else: another unit
// was built in, or the unit counts from another number. It may be up to odometerAge old. Half: fast
// rentals cost no distance. Double: such a unit costs the client more.
const (
	fastest     = 70 // 252 km/h
	odometerAge = 10 * time.Minute
)

// driven returns how far the vehicle was driven until the end, in metres; 0: not known.
func (b Booking) driven(end time.Time) int64 {
	driven := max(0, b.EndMetres-b.StartMetres)
	if b.StartMetres == 0 || driven > fastest*int64((end.Sub(b.ActualStart)+odometerAge)/time.Second) {
		return 0
	}
	return driven
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// FinalPrice returns what a rental costs that ends at a time, and its lines. By a tariff that is
// what was used: from the actual start to the end, with pauses, distance, and how long the vehicle
// was reserved (from the agreed start, the booking or the return by others before, whichever was
// last, to the actual start).
// Without one it is the price as agreed. It fails where the price is more than can be charged.
func (b Booking) FinalPrice(end time.Time) (Price, []Line, error) {
	if b.Plan == nil || b.ActualStart.IsZero() {
		return b.Price, b.Lines(), nil
	}
	return b.Plan.Price(b.Price.Currency, b.Price.Tax, b.used(end))
}

// Lines returns the lines of the booking's price: of the booked time, and by a tariff, once the
// rental has ended, of what was used. Their amounts are always the subtotal, and that of the last
// one, the tax on it: a price that the tariff does not explain (one that was kept as agreed by
// staff) has a single line before the tax.
func (b Booking) Lines() []Line {
	if b.Plan != nil {
		agreed := Usage{Time: b.End.Sub(b.Start)}
		explanations := []Usage{agreed}
		if !b.ActualEnd.IsZero() {
			explanations = []Usage{b.used(b.ActualEnd), agreed}
		}
		for _, u := range explanations {
			price, lines, err := b.Plan.Price(b.Price.Currency, b.Price.Tax, u)
			if err == nil && price.Subtotal == b.Price.Subtotal && price.TaxDue == b.Price.TaxDue {
				return lines
			}
		}
	}
	all := Line{Kind: TimeLine, Amount: b.Price.Subtotal}
	if b.Plan == nil {
		all.Quantity, all.Unit, all.Rate = b.Price.Hours, PerHour, b.Price.HourlyRate
	}
	return []Line{all, {Kind: TaxLine, Amount: b.Price.TaxDue}}
}
