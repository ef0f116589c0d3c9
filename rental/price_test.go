package rental_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/internal/require"
	"motorpool/rental"
)

var start = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// The example is that of docs/http-bookings.md.
func TestOver_PriceOfTheDocumentedExample(t *testing.T) {
	tariff := rental.Tariff{Currency: "EUR", HourlyRate: 1500, Tax: 100_000, Deposit: 20_000}
	p, err := tariff.Over(start, start.Add(8*time.Hour))
	if err != nil || p.Tariff != tariff || p.Hours != 800 || p.Subtotal != 12_000 || p.TaxDue != 1_200 || p.Rental() != 13_200 ||
		p.Total() != 33_200 {
		t.Errorf("8 hours cost %+v, %v", p, err)
	}
}

func TestOver_RoundsHoursSubtotalAndTaxHalfUpOnce(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		rate     rental.Minor
		tax      rental.TaxRate
		length   time.Duration
		hours    rental.Hundredths
		subtotal rental.Minor
		due      rental.Minor
	}{
		{1500, 0, time.Hour, 100, 1500, 0},
		{1500, 0, 18*time.Second - ms, 0, 0, 0},   // 0.00499… h
		{1500, 0, 18 * time.Second, 1, 15, 0},     // 0.005 h
		{1500, 0, 54*time.Second - ms, 1, 15, 0},  // 0.01499… h
		{1500, 0, 54 * time.Second, 2, 30, 0},     // 0.015 h
		{1500, 0, 20 * time.Minute, 33, 495, 0},   // 0.333… h: not 500
		{1500, 0, 40 * time.Minute, 67, 1005, 0},  // 0.666… h: not 1000
		{50, 0, time.Hour / 100, 1, 1, 0},         // 0.5
		{49, 0, time.Hour / 100, 1, 0, 0},         // 0.49
		{149, 0, time.Hour / 100, 1, 1, 0},        // 1.49
		{1, 500_000, time.Hour, 100, 1, 1},        // tax 0.5
		{1, 499_999, time.Hour, 100, 1, 0},        // tax 0.499999
		{50, 490_000, time.Hour / 100, 1, 1, 0},   // tax on the rounded 1, 0.49, not on 0.5
		{150, 250_000, time.Hour / 100, 1, 2, 1},  // tax on the rounded 2, 0.5, not on 1.5
		{1999, 77_000, time.Hour, 100, 1999, 154}, // 153.923
		{0, 190_000, 8 * time.Hour, 800, 0, 0},
		{1500, rental.FullTax, time.Hour, 100, 1500, 1500},
		{1, 0, rental.MaxLength, 878_400, 8784, 0},
	} {
		p, err := rental.Tariff{Currency: "EUR", HourlyRate: c.rate, Tax: c.tax}.Over(start, start.Add(c.length))
		if err != nil || p.Hours != c.hours || p.Subtotal != c.subtotal || p.TaxDue != c.due {
			t.Errorf("%v at %d and tax %d: price %+v, %v; want %+v", c.length, c.rate, c.tax, p, err, c)
		}
	}
}

func drawTariff(t *rapid.T) rental.Tariff {
	return rental.Tariff{
		// Even twice the longest time must have a price.
		Currency: rapid.SampledFrom(someCurrencies).Draw(t, "currency"), HourlyRate: min(drawAmount(t, "rate"), 25_000_000),
		Tax: rental.TaxRate(rapid.Int64Range(0, int64(rental.FullTax)).Draw(t, "tax")), Deposit: drawAmount(t, "deposit"),
	}
}

func drawLength(t *rapid.T, label string) time.Duration {
	limit := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour, rental.MaxLength}).Draw(t, label+" up to")
	return time.Duration(rapid.Int64Range(1, limit.Milliseconds()).Draw(t, label)) * time.Millisecond
}

// roundHalfUp returns the nearest whole number, and of two the larger. It computes in fractions,
// without the code of the price.
func roundHalfUp(x *big.Rat) *big.Rat {
	twice := new(big.Rat).Add(new(big.Rat).Mul(x, big.NewRat(2, 1)), big.NewRat(1, 1))
	floor := new(big.Int).Div(twice.Num(), new(big.Int).Mul(twice.Denom(), big.NewInt(2)))
	return new(big.Rat).SetInt(floor)
}

// A booking costs the same whenever it begins, and in whichever time zone its times are.
func TestOver_EqualsExactFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tariff, length := drawTariff(t), drawLength(t, "length")
		from := start.Add(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "later")) * time.Millisecond)
		p, err := tariff.Over(from.In(time.FixedZone("", 2*60*60)), from.Add(length))
		require.NoError(t, err)
		hours := roundHalfUp(big.NewRat(length.Nanoseconds()*10, (time.Hour / 10).Nanoseconds()))
		subtotal := roundHalfUp(new(big.Rat).Mul(hours, big.NewRat(int64(tariff.HourlyRate), 100)))
		tax := roundHalfUp(new(big.Rat).Mul(subtotal, big.NewRat(int64(tariff.Tax), 1_000_000)))
		for _, c := range []struct {
			what string
			got  int64
			want *big.Rat
		}{
			{"hours", int64(p.Hours), hours}, {"subtotal", int64(p.Subtotal), subtotal}, {"tax", int64(p.TaxDue), tax},
			{"rental", int64(p.Rental()), new(big.Rat).Add(subtotal, tax)},
			{"total", int64(p.Total()), new(big.Rat).Add(new(big.Rat).Add(subtotal, tax), big.NewRat(int64(tariff.Deposit), 1))},
		} {
			if new(big.Rat).SetInt64(c.got).Cmp(c.want) != 0 {
				t.Errorf("%s of %v: %d, want %s", c.what, length, c.got, c.want.RatString())
			}
		}
	})
}

func TestOver_RefusesALengthOrPriceOutOfRange(t *testing.T) {
	dear := rental.Tariff{Currency: "EUR", HourlyRate: rental.MaxAmount, Tax: 0}
	for length, of := range map[time.Duration]rental.Tariff{
		0: dear, -time.Hour: dear, time.Millisecond - 1: dear, time.Hour + 36*time.Second: dear, rental.MaxLength: dear, 1<<63 - 1: dear,
		// The limit includes the tax.
		time.Hour: {Currency: "EUR", HourlyRate: rental.MaxAmount, Tax: 1},
	} {
		if p, err := of.Over(start, start.Add(length)); err == nil || p != (rental.Price{}) {
			t.Errorf("%v: price %+v, want an error", length, p)
		}
	}
	if p, err := dear.Over(start, start.Add(time.Hour)); err != nil || p.Rental() != rental.MaxAmount {
		t.Errorf("price %+v, %v; want a rental of the largest amount", p, err)
	}
}
