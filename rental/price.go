package rental

import (
	"errors"
	"math/big"
	"time"
)

// Hundredths is a number in hundredths: 150 is 1.5.
type Hundredths int64

// Tariff is the rates of a booking, fixed when it is created.
type Tariff struct {
	Currency   Currency
	HourlyRate Minor
	Tax        TaxRate
	Deposit    Minor
}

// Price is the price of a period at a tariff.
type Price struct {
	Tariff
	Hours    Hundredths
	Subtotal Minor // hours × hourly rate
	TaxDue   Minor // tax on the subtotal
}

var errPriceRange = errors.New("the price is out of range")

// Over returns the price of a period. Hours are rounded half up to two decimals first; then the
// subtotal, and the tax on it, half up to the currency's minor unit, once each. It fails if the end
// is not after the start, or if the rental is more than MaxAmount.
func (t Tariff) Over(start, end time.Time) (Price, error) {
	milliseconds := end.Sub(start).Milliseconds()
	if milliseconds <= 0 {
		return Price{}, errPriceRange
	}
	// The quotient is less than milliseconds, so it fits an int64.
	hours := divideHalfUp(product(milliseconds, 100), int64(time.Hour/time.Millisecond)).Int64()
	subtotal := divideHalfUp(product(hours, int64(t.HourlyRate)), 100)
	tax := divideHalfUp(new(big.Int).Mul(subtotal, big.NewInt(int64(t.Tax))), int64(FullTax))
	if new(big.Int).Add(subtotal, tax).Cmp(big.NewInt(int64(MaxAmount))) > 0 {
		return Price{}, errPriceRange
	}
	return Price{Tariff: t, Hours: Hundredths(hours), Subtotal: Minor(subtotal.Int64()), TaxDue: Minor(tax.Int64())}, nil
}

// Rental returns subtotal plus tax, without the deposit.
func (p Price) Rental() Minor { return p.Subtotal + p.TaxDue }

// Total returns rental plus deposit.
func (p Price) Total() Minor { return p.Rental() + p.Deposit }

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// divideHalfUp divides a number that is not negative by an even one, and rounds half up. It
// changes n.
func divideHalfUp(n *big.Int, by int64) *big.Int {
	divisor := big.NewInt(by)
	half := big.NewInt(by / 2)
	return n.Div(n.Add(n, half), divisor)
}

// Terms are an agency's rules for bookings.
type Terms struct {
	Currency     Currency
	Tax          TaxRate
	CancelCutoff time.Duration // before the start; from then on a booking cannot be cancelled
	Buffer       time.Duration // minimum between an extended end and the vehicle's next booking
	UnlockGrace  time.Duration // after the end, while the client can still unlock the vehicle
	PaymentWait  time.Duration // after the start, while an unlock needs the first payment's result
	FeeLimit     Minor         // the highest single fee; zero: see BookingDetails.FeeLimit
	Rules        Rules         // for rentals that clients start and end themselves
}

// DefaultUnlockGrace applies if an agency's fleet file sets no grace: a client who is late can
// still drive the car back.
const DefaultUnlockGrace = time.Hour

// DefaultPaymentWait applies if an agency's fleet file sets no wait: a client is not stranded for
// longer by a processor that gives no answer.
const DefaultPaymentWait = 10 * time.Minute

// Rate is what a vehicle costs. A vehicle without a rate cannot be booked.
type Rate struct {
	Hourly  Minor
	Deposit Minor
}
