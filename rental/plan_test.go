package rental_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// city is a tariff of car sharing in a city, in cents.
var city = rental.Plan{
	Category: "compact", Version: 3, Minute: 30, Hour: 1_200, Day: 7_900, Kilometre: 25, IncludedKm: 100,
	PauseMinute: 10, ReserveMinute: 5, FreeReserve: 15, Minimum: 200, Deposit: 10_000,
}

// explain writes lines as a person would: 2 day × 79.00 = 158.00.
func explain(c rental.Currency, lines []rental.Line) string {
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = fmt.Sprintf("%s %s", l.Kind, c.Format(l.Amount))
		if l.Unit != "" {
			parts[i] = fmt.Sprintf("%s %g %s × %s = %s", l.Kind, float64(l.Quantity)/100, l.Unit, c.Format(l.Rate), c.Format(l.Amount))
		}
	}
	return strings.Join(parts, ", ")
}

// The prices of this table are computed by hand.
func TestPlanPrice_TableMadeByHand(t *testing.T) {
	const (
		minute = time.Minute
		hour   = time.Hour
		day    = 24 * hour
	)
	hours := rental.Plan{Hour: 1_000, Day: 6_000}
	days := rental.Plan{Day: 5_000, Kilometre: 20, IncludedKm: 200}
	// Yen have no decimals, dinars three.
	yen := rental.Plan{Minute: 45, Hour: 1_500, Day: 9_800, Minimum: 300, Deposit: 20_000}
	dinar := rental.Plan{Minute: 55, Hour: 2_250, Day: 14_500, Kilometre: 75, Deposit: 50_000}
	for _, c := range []struct {
		what     string
		plan     rental.Plan
		currency rental.Currency
		tax      rental.TaxRate
		usage    rental.Usage
		lines    string
		hourly   rental.Minor
		hours    rental.Hundredths
	}{
		// Time, by started minutes, up to the caps: an hour from 40 minutes, a day from 6 h 35 min.
		{"nothing", city, "EUR", 0, rental.Usage{}, "minimum 2.00, tax 0.00", 1200, 0},
		{"a millisecond", city, "EUR", 0, rental.Usage{Time: time.Millisecond},
			"time 1 minute × 0.30 = 0.30, minimum 1.70, tax 0.00", 1200, 0},
		{"7 minutes", city, "EUR", 0, rental.Usage{Time: 7 * minute}, "time 7 minute × 0.30 = 2.10, tax 0.00", 1200, 12},
		{"7 minutes and a millisecond", city, "EUR", 0, rental.Usage{Time: 7*minute + time.Millisecond},
			"time 8 minute × 0.30 = 2.40, tax 0.00", 1200, 12},
		{"39 minutes", city, "EUR", 0, rental.Usage{Time: 39 * minute}, "time 39 minute × 0.30 = 11.70, tax 0.00", 1200, 65},
		{"40 minutes", city, "EUR", 0, rental.Usage{Time: 40 * minute}, "time 1 hour × 12.00 = 12.00, tax 0.00", 1200, 67},
		{"an hour", city, "EUR", 0, rental.Usage{Time: hour}, "time 1 hour × 12.00 = 12.00, tax 0.00", 1200, 100},
		{"an hour and a second", city, "EUR", 0, rental.Usage{Time: hour + time.Second},
			"time 1 hour × 12.00 = 12.00, time 1 minute × 0.30 = 0.30, tax 0.00", 1200, 100},
		{"6 h 23 min", city, "EUR", 0, rental.Usage{Time: 6*hour + 23*minute},
			"time 6 hour × 12.00 = 72.00, time 23 minute × 0.30 = 6.90, tax 0.00", 1200, 638},
		{"6 h 24 min", city, "EUR", 0, rental.Usage{Time: 6*hour + 24*minute}, "time 1 day × 79.00 = 79.00, tax 0.00", 1200, 640},
		{"a day", city, "EUR", 0, rental.Usage{Time: day}, "time 1 day × 79.00 = 79.00, tax 0.00", 1200, 2400},
		{"a day and 90 minutes", city, "EUR", 190_000, rental.Usage{Time: day + 90*minute},
			// 79 + 12 + 9 = 100
			"time 1 day × 79.00 = 79.00, time 1 hour × 12.00 = 12.00, time 30 minute × 0.30 = 9.00, tax 19.00", 1200, 2550},
		{"31 days", city, "EUR", 0, rental.Usage{Time: 31 * day}, "time 31 day × 79.00 = 2449.00, tax 0.00", 1200, 74_400},

		// Tax is rounded half up, once, on the subtotal: 2.10 × 7.7 % = 0.1617; 2.50 × 1 % = 0.025.
		{"tax down", city, "EUR", 77_000, rental.Usage{Time: 7 * minute}, "time 7 minute × 0.30 = 2.10, tax 0.16", 1200, 12},
		{"tax half up", rental.Plan{Minute: 50}, "EUR", 10_000, rental.Usage{Time: 5 * minute},
			"time 5 minute × 0.50 = 2.50, tax 0.03", 3000, 8},

		// Whole minutes of pauses are cheaper; a cap bounds them as any other time.
		{"paused", city, "EUR", 0, rental.Usage{Time: 30 * minute, Paused: 10*minute + 59*time.Second},
			"time 20 minute × 0.30 = 6.00, pause 10 minute × 0.10 = 1.00, tax 0.00", 1200, 50},
		{"paused for all of a day", city, "EUR", 0, rental.Usage{Time: day, Paused: 23 * hour},
			// 12.00 + 138.00 for 1380 minutes of pause is more than a day.
			"time 1 day × 79.00 = 79.00, tax 0.00", 1200, 2400},
		{"paused without a rate of pauses", hours, "EUR", 0, rental.Usage{Time: 2 * hour, Paused: hour},
			"time 2 hour × 10.00 = 20.00, tax 0.00", 1000, 200},
		{"paused longer than it lasted", city, "EUR", 0, rental.Usage{Time: 30 * minute, Paused: hour},
			"pause 30 minute × 0.10 = 3.00, tax 0.00", 1200, 50},

		// Reservation.
		{"reserved for the free time", city, "EUR", 0, rental.Usage{Reserved: 15 * minute, Time: 10 * minute},
			"time 10 minute × 0.30 = 3.00, tax 0.00", 1200, 17},
		{"reserved for longer", city, "EUR", 0, rental.Usage{Reserved: 20*minute + time.Second, Time: 10 * minute},
			"reservation 6 minute × 0.05 = 0.30, time 10 minute × 0.30 = 3.00, tax 0.00", 1200, 17},
		{"begun early", city, "EUR", 0, rental.Usage{Reserved: -hour, Time: 10 * minute},
			"time 10 minute × 0.30 = 3.00, tax 0.00", 1200, 17},

		// Distance: started kilometres beyond 100 for each started day.
		{"included distance", city, "EUR", 0, rental.Usage{Time: 2 * hour, Metres: 100_000},
			"time 2 hour × 12.00 = 24.00, tax 0.00", 1200, 200},
		{"a metre more", city, "EUR", 0, rental.Usage{Time: 2 * hour, Metres: 100_001},
			"time 2 hour × 12.00 = 24.00, distance 1 km × 0.25 = 0.25, tax 0.00", 1200, 200},
		{"distance of the second day", city, "EUR", 0, rental.Usage{Time: day + minute, Metres: 250_000},
			"time 1 day × 79.00 = 79.00, time 1 minute × 0.30 = 0.30, distance 50 km × 0.25 = 12.50, tax 0.00", 1200, 2402},

		// Minimum: 5 minutes are 1.50.
		{"less than the minimum", city, "EUR", 200_000, rental.Usage{Time: 5 * minute},
			"time 5 minute × 0.30 = 1.50, minimum 0.50, tax 0.40", 1200, 8},

		// Other tariffs.
		{"by hours", hours, "EUR", 0, rental.Usage{Time: 90 * minute}, "time 2 hour × 10.00 = 20.00, tax 0.00", 1000, 150},
		{"by hours, the sixth", hours, "EUR", 0, rental.Usage{Time: 5*hour + minute}, "time 1 day × 60.00 = 60.00, tax 0.00", 1000, 502},
		{"by days", days, "EUR", 0, rental.Usage{Time: day + minute, Metres: 500_000},
			"time 2 day × 50.00 = 100.00, distance 100 km × 0.20 = 20.00, tax 0.00", 5000, 2402},
		{"an hour that is no cap", rental.Plan{Minute: 10, Hour: 700}, "EUR", 0, rental.Usage{Time: 61 * minute},
			"time 61 minute × 0.10 = 6.10, tax 0.00", 600, 102},
		{"distance alone", rental.Plan{Kilometre: 50}, "EUR", 0, rental.Usage{Time: day, Metres: 2_000},
			"distance 2 km × 0.50 = 1.00, tax 0.00", 0, 2400},

		// Yen: 1,500 × 10 % = 150; 33 × 45 = 1,485 × 10 % = 148.5.
		{"yen", yen, "JPY", 100_000, rental.Usage{Time: 33 * minute}, "time 33 minute × 45 = 1485, tax 149", 1500, 55},
		{"yen, an hour", yen, "JPY", 100_000, rental.Usage{Time: 34 * minute}, "time 1 hour × 1500 = 1500, tax 150", 1500, 57},
		{"yen, at least", yen, "JPY", 100_000, rental.Usage{Time: minute}, "time 1 minute × 45 = 45, minimum 255, tax 30", 1500, 2},

		// Dinars: 0.055 × 11 = 0.605; × 10 % = 0.0605.
		{"dinars", dinar, "BHD", 100_000, rental.Usage{Time: 11 * minute}, "time 11 minute × 0.055 = 0.605, tax 0.061", 2250, 18},
		{"dinars, two days", dinar, "BHD", 100_000, rental.Usage{Time: 2*day - minute, Metres: 1},
			"time 2 day × 14.500 = 29.000, distance 1 km × 0.075 = 0.075, tax 2.908", 2250, 4798},
	} {
		price, lines, err := c.plan.Price(c.currency, c.tax, c.usage)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if got := explain(c.currency, lines); got != c.lines {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.lines)
		}
		if price.HourlyRate != c.hourly || price.Hours != c.hours || price.Currency != c.currency || price.Tax != c.tax ||
			price.Deposit != c.plan.Deposit {
			t.Errorf("%s: price %+v; want hourly rate %d and %d hours", c.what, price, c.hourly, c.hours)
		}
	}
}

// Times are instants: a day is 24 hours, whatever the clocks and the calendar do.
func TestPlanPrice_DaysAre24HoursAcrossClockChangesAndMonths(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := func(month time.Month, day, hour, minute int) time.Time {
		return time.Date(2026, month, day, hour, minute, 0, 0, berlin)
	}
	for _, c := range []struct {
		what       string
		start, end time.Time
		subtotal   rental.Minor
	}{
		{"the day on which summer time begins has 23 hours", at(3, 29, 0, 0), at(3, 30, 0, 0), 7_900},
		{"the day on which summer time ends has 25 hours", at(10, 25, 0, 0), at(10, 26, 0, 0), 7_900 + 1_200},
		{"the hour that comes twice", at(10, 25, 1, 30), at(10, 25, 3, 30), 3 * 1_200},
		{"a February", at(2, 1, 0, 0), at(3, 1, 0, 0), 28 * 7_900},
	} {
		b := rental.Booking{Plan: &city, Price: rental.Price{Tariff: rental.Tariff{Currency: "EUR"}}, Start: c.start, ActualStart: c.start}
		price, _, err := b.FinalPrice(c.end)
		if err != nil || price.Subtotal != c.subtotal {
			t.Errorf("%s: subtotal %d, %v; want %d", c.what, price.Subtotal, err, c.subtotal)
		}
	}
}

func drawPlan(t *rapid.T) rental.Plan {
	amount := func(label string, most int64) rental.Minor {
		if rapid.Bool().Draw(t, "no "+label) {
			return 0
		}
		return rental.Minor(rapid.Int64Range(1, most).Draw(t, label))
	}
	return rental.Plan{
		Minute: amount("minute", 1_000), Hour: amount("hour", 20_000), Day: amount("day", 200_000),
		Kilometre: amount("kilometre", 1_000), IncludedKm: rapid.IntRange(0, 300).Draw(t, "included"),
		PauseMinute: amount("pause", 1_000), ReserveMinute: amount("reserve", 1_000),
		FreeReserve: rental.Minutes(rapid.IntRange(0, 60).Draw(t, "free")), Minimum: amount("minimum", 5_000),
	}
}

func drawUsage(t *rapid.T) rental.Usage {
	u := rental.Usage{Time: drawLength(t, "time"), Reserved: drawLength(t, "reserved")}
	u.Metres = rapid.Int64Range(0, 2_000_000).Draw(t, "metres")
	u.Paused = time.Duration(rapid.Int64Range(0, int64(u.Time)).Draw(t, "paused"))
	return u
}

func mustPrice(t *rapid.T, p rental.Plan, u rental.Usage) (rental.Price, []rental.Line) {
	price, lines, err := p.Price("EUR", 190_000, u)
	require.NoError(t, err)
	return price, lines
}

func TestPlanPrice_LinesSumUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price, lines := mustPrice(t, drawPlan(t), drawUsage(t))
		var all rental.Minor
		for _, l := range lines {
			if l.Unit != "" && rental.Minor(l.Quantity)*l.Rate != 100*l.Amount {
				t.Errorf("line %+v: its amount is not quantity × rate", l)
			}
			all += l.Amount
		}
		if all != price.Rental() || lines[len(lines)-1] != (rental.Line{Kind: rental.TaxLine, Amount: price.TaxDue}) {
			t.Errorf("lines %+v sum up to %d; want the rental of %+v", lines, all, price)
		}
	})
}

func TestPlanPrice_MoreIsNeverCheaper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan, u := drawPlan(t), drawUsage(t)
		price, _ := mustPrice(t, plan, u)
		for what, more := range map[string]func(*rental.Usage){
			"distance":    func(u *rental.Usage) { u.Metres += rapid.Int64Range(1, 1_000_000).Draw(t, "further") },
			"reservation": func(u *rental.Usage) { u.Reserved += drawLength(t, "reserved longer") },
			// A started day includes more distance.
			"time": func(u *rental.Usage) { u.Time += drawLength(t, "longer"); plan.IncludedKm = 0 },
		} {
			used := u
			more(&used)
			if what == "time" {
				price, _ = mustPrice(t, plan, u)
			}
			dearer, _ := mustPrice(t, plan, used)
			if dearer.Subtotal < price.Subtotal || dearer.TaxDue < price.TaxDue || dearer.Hours < price.Hours {
				t.Errorf("more %s: %+v costs %+v, %+v costs %+v", what, u, price, used, dearer)
			}
		}
	})
}

func TestPlanPrice_NeverExceedsACap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan, u := drawPlan(t), drawUsage(t)
		_, lines := mustPrice(t, plan, u)
		var spent rental.Minor
		for _, l := range lines {
			if l.Kind == rental.TimeLine || l.Kind == rental.PauseLine {
				spent += l.Amount
			}
		}
		for span, limit := range map[time.Duration]rental.Minor{time.Minute: plan.Minute, time.Hour: plan.Hour, 24 * time.Hour: plan.Day} {
			begun := rental.Minor((u.Time + span - 1) / span)
			if limit > 0 && spent > begun*limit {
				t.Errorf("%v costs %d by lines %+v: more than %d × %d for %v", u.Time, spent, lines, begun, limit, span)
			}
		}
	})
}

func TestPlanPrice_RefusesAPriceOutOfRange(t *testing.T) {
	dear := rental.Plan{Minute: rental.MaxAmount}
	if price, _, err := dear.Price("EUR", 0, rental.Usage{Time: time.Minute}); err != nil || price.Rental() != rental.MaxAmount {
		t.Errorf("price %+v, %v; want the largest amount", price, err)
	}
	huge := rental.Plan{
		Minute: rental.MaxAmount, Hour: rental.MaxAmount, Day: rental.MaxAmount, Kilometre: rental.MaxAmount, PauseMinute: rental.MaxAmount,
		ReserveMinute: rental.MaxAmount, Minimum: rental.MaxAmount,
	}
	for what, c := range map[string]struct {
		plan  rental.Plan
		tax   rental.TaxRate
		usage rental.Usage
	}{
		"two minutes": {dear, 0, rental.Usage{Time: 2 * time.Minute}},
		"its tax":     {dear, 1, rental.Usage{Time: time.Minute}},
		// Their product is 2 to the power of 64.
		"time that overflows":     {rental.Plan{Minute: 1 << 39}, 0, rental.Usage{Time: 1 << 25 * time.Minute}},
		"distance that overflows": {rental.Plan{Kilometre: 1 << 39}, 0, rental.Usage{Metres: 1 << 25 * 1000}},
		"the longest usage": {
			huge, rental.FullTax, rental.Usage{Reserved: 1<<63 - 1, Time: 1<<63 - 1, Paused: 1 << 62, Metres: 1<<63 - 1},
		},
	} {
		if price, lines, err := c.plan.Price("EUR", c.tax, c.usage); err == nil || price != (rental.Price{}) || lines != nil {
			t.Errorf("%s: price %+v, lines %+v; want an error", what, price, lines)
		}
	}
}

func TestPlanWords(t *testing.T) {
	for want, c := range map[string]struct {
		plan     rental.Plan
		currency rental.Currency
	}{
		"0.30 EUR a minute, at most 12.00 EUR an hour and 79.00 EUR a day, 0.10 EUR a minute while it is paused, " +
			"0.05 EUR a minute of reservation after 15 minutes, 100 km a day included, then 0.25 EUR a km, 2.00 EUR at least, " +
			"a deposit of 100.00 EUR": {city, "EUR"},
		"1500 JPY an hour, at most 9800 JPY a day": {rental.Plan{Hour: 1_500, Day: 9_800}, "JPY"},
		"14.500 BHD a day, 0.075 BHD a km, to be returned plugged in": {
			rental.Plan{Day: 14_500, Kilometre: 75, PluggedIn: true}, "BHD"},
		"0.10 EUR a minute": {rental.Plan{Minute: 10, Hour: 700}, "EUR"},
	} {
		assert.Equal(t, c.plan.Words(c.currency), want, "words")
	}
}

func TestPlanAndRules_JSONKeepsAllAndDefaultsWhatIsAbsent(t *testing.T) {
	var plan rental.Plan
	text, err := json.Marshal(&city)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil || plan != city || !strings.Contains(string(text), `"free_reserve_minutes":15`) {
		t.Errorf("plan %+v, %v, of %s", plan, err, text)
	}
	rules := rental.DefaultRules
	err = json.Unmarshal([]byte(`{"hold_minutes":20,"return_doors":false}`), &rules)
	want := rental.DefaultRules
	want.HoldFor, want.ReturnDoors = 20, false
	if err != nil || rules != want {
		t.Errorf("rules %+v, %v; want %+v", rules, err, want)
	}
	var read rental.Rules
	text, err = json.Marshal(rules)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || read != rules {
		t.Errorf("rules %+v, %v, of %s", read, err, text)
	}
}

func planned() rental.BookingDetails {
	d := upcoming()
	d.Plan = &city
	var err error
	d.Price, _, err = city.Price("EUR", 100_000, rental.Usage{Time: d.End.Sub(d.Start)})
	if err != nil {
		panic(err)
	}
	return d
}

func TestBook_ByTheTariffOfTheCategory(t *testing.T) {
	d, f := draft()
	f.Plan, f.Rate = &city, nil
	b, err := d.Book(start, f)
	if err != nil || b.Plan != &city || b.Price != planned().Price || b.Price.Subtotal != 7_900 || b.Price.Deposit != 10_000 {
		t.Errorf("booking %+v, %v; want it for 79.00 a day", b, err)
	}
	dear := city
	dear.Minimum = rental.MaxAmount
	f.Plan = &dear
	_, err = d.Book(start, f)
	fieldIsWrong(t, err, "end_date", "makes the booking cost more than can be charged")
}

func TestExtend_ByTheTariff(t *testing.T) {
	d := planned()
	c, err := d.Begin(start)
	require.NoError(t, err)
	d.Booking, d.Charges = c.Booking, c.Charges
	c, err = d.Extend(start, start.Add(25*time.Hour), telematics.Client)
	if err != nil || c.Booking.Price.Subtotal != 7_900+1_200 || c.Charges[0].Amount != 1_320 {
		t.Fatalf("extended %+v, %v; want an hour of 12.00 more, with 10 %% tax", c, err)
	}
	extension := c.Charges[0]
	extension.ID, extension.Number = rental.ChargeID{9}, 1
	longer := d
	longer.Booking, longer.Charges = c.Booking, append(d.Charges, extension)
	if c, err := longer.TakeBack(extension.ID); err != nil || c.Booking.Price != d.Price || !c.Booking.End.Equal(d.End) {
		t.Errorf("taken back %+v, %v; want %+v", c, err, d.Price)
	}
	// What the start did not charge, the extension does not.
	d.Charges = nil
	again, err := d.Extend(start, start.Add(25*time.Hour), telematics.Client)
	if err != nil || again.Booking.Price.Subtotal != 7_900+1_200 || len(again.Charges) != 0 {
		t.Errorf("extended %+v, %v; want no charge", again, err)
	}
}

func TestFinalPrice_OfWhatWasUsed(t *testing.T) {
	d := planned()
	d.Created = start.Add(-time.Hour)
	d.State, d.ActualStart = rental.Active, start.Add(20*time.Minute)
	d.PausedFor, d.PausedSince = 10*time.Minute, start.Add(45*time.Minute)
	d.StartMetres, d.EndMetres = 5_000_000, 5_101_000
	end := start.Add(50 * time.Minute)
	price, lines, err := d.FinalPrice(end)
	const want = "reservation 5 minute × 0.05 = 0.25, time 15 minute × 0.30 = 4.50, pause 15 minute × 0.10 = 1.50, " +
		"distance 1 km × 0.25 = 0.25, tax 0.65"
	if err != nil || explain("EUR", lines) != want || price.Rental() != 715 {
		t.Errorf("final price %+v, %v, of %s; want %s", price, err, explain("EUR", lines), want)
	}
	waited := d
	waited.FreeSince = start.Add(10 * time.Minute)
	if _, lines, err := waited.FinalPrice(end); err != nil || strings.Contains(explain("EUR", lines), "reservation") {
		t.Errorf("others had the vehicle at first: %s, %v; want the free minutes counted since then", explain("EUR", lines), err)
	}
	// Another unit's, and what a new vehicle was driven before.
	for _, metres := range [][2]int64{{5_000_000, 4_999_999_000}, {0, 120_000}} {
		faulty := d
		faulty.StartMetres, faulty.EndMetres = metres[0], metres[1]
		if _, lines, err := faulty.FinalPrice(end); err != nil || strings.Contains(explain("EUR", lines), "distance") {
			t.Errorf("from %v m: %s, %v; want no distance", metres, explain("EUR", lines), err)
		}
	}
	// The booking keeps what explains it.
	d.State, d.ActualEnd, d.Price = rental.Completed, end, price
	d.PausedFor, d.PausedSince = 15*time.Minute, time.Time{}
	assert.Equal(t, explain("EUR", d.Lines()), want, "lines of the ended booking")
}

func TestLines_AlwaysSumUpToThePrice(t *testing.T) {
	byHours := upcoming()
	agreed := planned() // ended by staff
	agreed.State, agreed.ActualStart, agreed.ActualEnd = rental.Completed, start, start.Add(time.Hour)
	other := planned()
	other.Price.Subtotal, other.Price.TaxDue = 5_000, 500
	taxed := planned()
	taxed.Price.TaxDue++
	for want, d := range map[string]rental.BookingDetails{
		"time 79.00, tax 7.91":                    taxed,
		"time 8 hour × 15.00 = 120.00, tax 12.00": byHours, "time 1 day × 79.00 = 79.00, tax 7.90": agreed,
		"time 50.00, tax 5.00": other,
	} {
		assert.Equal(t, explain("EUR", d.Lines()), want, "lines")
	}
	if price, lines, err := byHours.FinalPrice(start.Add(time.Hour)); err != nil || price != byHours.Price || len(lines) != 2 {
		t.Errorf("final price without a tariff: %+v, %+v, %v; want it as agreed", price, lines, err)
	}
}

// closed ends a rental by a tariff an hour after its start, which was paid, and a refund since.
func closed(t *testing.T, metres int64, goodwill rental.Minor, unitSince time.Time) (charged, refunded rental.Minor) {
	t.Helper()
	d := planned()
	d = after(d, do(t)(d.Begin(start)))
	d.StartMetres = 1_000_000
	plan := city
	plan.Kilometre = 50
	d.Plan = &plan
	for i := range d.Charges {
		carryOut(&d.Charges[i], start)
	}
	if goodwill > 0 {
		d = after(d, do(t)(d.Refund(start, goodwill, "the heating was broken")))
	}
	d.UnitSince = unitSince
	ended, done, err := d.Close(start.Add(time.Hour), start.Add(time.Hour), 1_000_000+metres)
	if !done {
		t.Error("the end waits, with nothing in progress")
	}
	d = after(d, do(t)(ended, err))
	for _, c := range d.Charges {
		switch {
		case c.Kind == rental.RefundCharge:
			refunded += c.Amount
		case c.Kind != rental.DepositCharge:
			charged += c.Amount
		}
	}
	return charged, refunded
}

// The start charged a day, 86.90 with tax; an hour is 13.20, and with 150 km too
// many 12.00 + 75.00 + 8.70 = 95.70. What staff gave back is not charged again.
func TestClose_ChargesTheRestOrRefundsTheExcess(t *testing.T) {
	for what, c := range map[string]struct {
		metres, goodwill, charged, refunded rental.Minor
		unitSince                           time.Time
	}{
		"an hour":                                {50_000, 0, 8_690, 8_690 - 1_320, time.Time{}},
		"an hour, and 150 km too many":           {250_000, 0, 8_690 + 880, 0, start.Add(-time.Hour)},
		"an hour, after a refund":                {50_000, 500, 8_690, 8_690 - 1_320 + 500, time.Time{}},
		"an hour, 150 km too many, and a refund": {250_000, 500, 8_690 + 880, 500, time.Time{}},
		"an hour, after all was refunded":        {50_000, 8_690, 8_690, 8_690, time.Time{}},
		"an hour, 150 km too many by the odometer of a unit that came meanwhile": {
			250_000, 0, 8_690, 8_690 - 1_320, start.Add(30 * time.Minute),
		},
	} {
		if charged, refunded := closed(t, int64(c.metres), c.goodwill, c.unitSince); charged != c.charged || refunded != c.refunded {
			t.Errorf("%s: charged %d, refunded %d; want %d and %d", what, charged, refunded, c.charged, c.refunded)
		}
	}
}

// An extension whose payment has no result when the rental ends, and that is not needed any more,
// is withdrawn first: it may have been paid.
func TestClose_AnExtensionWithoutAResultIsWithdrawnFirst(t *testing.T) {
	for name, test := range map[string]struct {
		settle func(*rental.Charge)
		back   rental.Minor // of 86.90 for a day, and as much for another; an hour is 13.20
	}{
		"not paid": {func(c *rental.Charge) { carryOut(c, start) }, 7370},
		"paid":     {func(c *rental.Charge) { c.State, c.Settled, c.PaidAt = rental.Paid, c.Amount, start }, 2*8690 - 1320},
	} {
		d := planned()
		d = after(d, do(t)(d.Begin(start)))
		for i := range d.Charges {
			carryOut(&d.Charges[i], start)
		}
		d = after(d, do(t)(d.Extend(start, d.Start.Add(48*time.Hour), telematics.Client)))
		end := start.Add(time.Hour)
		waits, done, err := d.Close(end, end, 0)
		if err != nil || done || waits.Booking != d.Booking || len(waits.Amended) != 1 || waits.Amended[0].Goal != rental.Release {
			t.Fatalf("%s: the end is %+v, done %v, %v; want the extension withdrawn", name, waits, done, err)
		}
		d = after(d, waits)
		if again, done, err := d.Close(end, end, 0); err != nil || done || len(again.Amended) > 0 || again.Booking != d.Booking {
			t.Errorf("%s: then the end is %+v, done %v, %v; want it to wait", name, again, done, err)
		}
		test.settle(&d.Charges[len(d.Charges)-1])
		c, done, err := d.Close(end, end, 0)
		var back rental.Minor
		for _, charge := range c.Charges {
			back += charge.Amount
		}
		if err != nil || !done || c.Booking.State != rental.Completed || back != test.back {
			t.Errorf("%s: %d are refunded, done %v, %v; want %d: %+v", name, back, done, err, test.back, c)
		}
	}
}
