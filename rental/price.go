package rental

import (
	"errors"
	"math/big"
	"time"
)

// Hundredths is a number in hundredths: 150 is 1.5.
type Hundredths int64

// TaxRate is a share in millionths: 190000 is 19 %.
type TaxRate int64

// Tariff is what a booking costs, fixed when it is made.
type Tariff struct {
	Currency   Currency
	HourlyRate Minor
	Tax        TaxRate
	Deposit    Minor
}

// Price is a tariff over a time.
type Price struct {
	Tariff
	Hours    Hundredths
	Subtotal Minor // hours × hourly rate
	TaxDue   Minor // tax on the subtotal
}

var errPriceRange = errors.New("the price is out of range")

// Over returns the price of a time. Hours are rounded half up to two decimals first; then the subtotal, and
// the tax on it, half up to the currency's minor unit, once each.
func (t Tariff) Over(start, end time.Time) (Price, error) {
	milliseconds := end.Sub(start).Milliseconds()
	hours := divideHalfUp(product(milliseconds, 100), int64(time.Hour/time.Millisecond))
	p := Price{Tariff: t}
	if milliseconds <= 0 || !hours.IsInt64() {
		return Price{}, errPriceRange
	}
	p.Hours = Hundredths(hours.Int64())
	subtotal := divideHalfUp(product(int64(p.Hours), int64(t.HourlyRate)), 100)
	tax := divideHalfUp(new(big.Int).Mul(subtotal, big.NewInt(int64(t.Tax))), 1_000_000)
	if limit := big.NewInt(int64(MaxAmount)); subtotal.Cmp(limit) > 0 || tax.Cmp(limit) > 0 {
		return Price{}, errPriceRange
	}
	p.Subtotal, p.TaxDue = Minor(subtotal.Int64()), Minor(tax.Int64())
	return p, nil
}

// Rental is what is paid for the time: subtotal and tax.
func (p Price) Rental() Minor { return p.Subtotal + p.TaxDue }

// Total is the rental and the deposit.
func (p Price) Total() Minor { return p.Rental() + p.Deposit }

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// divideHalfUp divides what is not negative, and rounds half up.
func divideHalfUp(n *big.Int, by int64) *big.Int {
	divisor := big.NewInt(by)
	half := big.NewInt(by / 2)
	return n.Div(n.Add(n, half), divisor)
}
