package rental_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// model is a booking to which anything may happen, with its fees and captures counted separately.
type model struct {
	rental.BookingDetails
	now      time.Time
	tariff   rental.Tariff
	fees     rental.Minor // the sum of the decided fees
	captured rental.Minor // the amount of the decided capture
	started  bool
}

func newModel(t *rapid.T) *model {
	l := &model{BookingDetails: upcoming(), tariff: drawTariff(t), now: start.Add(-2 * time.Hour)}
	l.tariff.Currency = "EUR"
	price, err := l.tariff.Over(l.Start, l.End)
	require.NoError(t, err)
	l.Price = price
	if rapid.Bool().Draw(t, "booked again") {
		l.Next = l.End.Add(drawLength(t, "pause"))
	}
	if rapid.Bool().Draw(t, "begun") { // most decisions need an active booking
		c, err := l.Begin(l.now)
		l.started = l.take(t, c, err)
		for i := range l.Charges {
			carryOut(&l.Charges[i], l.now)
		}
	}
	return l
}

// take applies a change, and reports whether there is one. A refusal changes nothing.
func (l *model) take(t *rapid.T, c rental.Change, err error) bool {
	if err != nil {
		if c.Booking != (rental.Booking{}) || c.Charges != nil || c.Amended != nil {
			t.Fatalf("a refusal came with a change: %+v", c)
		}
		return false
	}
	allowed := map[rental.BookingState][]rental.BookingState{
		rental.Upcoming: {rental.Upcoming, rental.Active, rental.Cancelled}, rental.Active: {rental.Active, rental.Completed},
		rental.Completed: {rental.Completed}, rental.Cancelled: {rental.Cancelled},
	}
	if !slices.Contains(allowed[l.State], c.Booking.State) {
		t.Fatalf("a booking that was %s became %s", l.State, c.Booking.State)
	}
	for _, added := range c.Charges {
		if due := added.NextAttempt.Equal(l.now); due != (added.Amount > 0) || added.Amount == 0 && added.State != rental.Paid {
			t.Fatalf("new charge %+v, want it due now, or paid where its amount is 0", added)
		}
	}
	for _, amended := range c.Amended {
		i := slices.IndexFunc(l.Charges, func(c rental.Charge) bool { return c.ID == amended.ID })
		if i < 0 || l.Charges[i].State != amended.State || l.Charges[i].State.IsFinal() || !amended.NextAttempt.Equal(l.now) {
			t.Fatalf("amended charge %+v, want a known one that is not final, due now", amended)
		}
	}
	l.BookingDetails = after(l.BookingDetails, c)
	return true
}

func (l *model) decisions() map[string]func(*rapid.T) {
	drawMoney := func(t *rapid.T) rental.Minor {
		return rental.Minor(rapid.Int64Range(-1, 40_000).Draw(t, "money"))
	}
	return map[string]func(*rapid.T){
		"time passes": func(t *rapid.T) { l.now = l.now.Add(drawLength(t, "pause") % (3 * time.Hour)) },
		"cancel": func(t *rapid.T) {
			can := l.CanCancel(l.now)
			c, err := l.Cancel(l.now, telematics.Client)
			if l.take(t, c, err) != can {
				t.Fatalf("can be cancelled: %v, but Cancel says %v", can, err)
			}
		},
		"extend": func(t *rapid.T) {
			can, old := l.CanExtend(l.now), l.Booking
			end := l.End.Add(time.Duration(rapid.Int64Range(-1, 120).Draw(t, "minutes")) * time.Minute)
			c, err := l.Extend(l.now, end, telematics.Client)
			if !l.take(t, c, err) {
				if can && end.After(old.End) && !end.After(old.End.Add(30*time.Minute)) {
					t.Fatalf("can be extended, but not by %v: Extend says %v", end.Sub(old.End), err)
				}
				return
			}
			if !can && end != old.End {
				t.Fatal("extended although CanExtend says no")
			}
			if !l.Next.IsZero() && end != old.End && l.Next.Before(end.Add(l.Terms.Buffer)) {
				t.Fatalf("extended to %v although the next booking begins at %v", end, l.Next)
			}
			if l.Price.Rental() < old.Price.Rental() || l.End.Before(old.End) {
				t.Fatalf("the extension reduced the price or the time: %+v", l.Price)
			}
		},
		"start": func(t *rapid.T) {
			c, err := l.Begin(l.now)
			l.started = l.take(t, c, err) || l.started
		},
		"end": func(t *rapid.T) {
			c, err := l.Finish(l.now)
			l.take(t, c, err)
		},
		"fine": func(t *rapid.T) {
			amount := drawMoney(t)
			c, err := l.Fine(l.now, rental.Fee{Kind: "other", Amount: amount})
			if l.take(t, c, err) {
				l.fees += amount
			}
		},
		"refund": func(t *rapid.T) {
			amount := drawMoney(t)
			c, err := l.Refund(l.now, amount, "why not")
			if !l.take(t, c, err) {
				return
			}
			var sum rental.Minor
			for _, r := range c.Charges {
				sum += r.Amount
			}
			if sum == 0 || amount > 0 && sum != amount {
				t.Fatalf("the refunds of %d sum to %d", amount, sum)
			}
		},
		"capture": func(t *rapid.T) {
			amount := drawMoney(t)
			c, err := l.CaptureDeposit(l.now, amount, "scratch")
			if l.take(t, c, err) {
				l.captured += amount
			}
		},
		"the processor": func(t *rapid.T) {
			for i := range l.Charges {
				l.processor(t, &l.Charges[i])
				l.BookingDetails = after(l.BookingDetails, rental.SettleUp(l.BookingDetails, l.now))
			}
		},
	}
}

// processor applies to a charge an outcome that a processor may give.
func (l *model) processor(t *rapid.T, c *rental.Charge) {
	if c.NextAttempt.IsZero() && c.State != rental.RequiresAction || c.State.IsFinal() {
		return
	}
	was := *c
	switch rapid.IntRange(0, 5).Draw(t, "outcome") {
	case 0:
		c.State = rental.Unknown
	case 1:
		if c.Kind == rental.RefundCharge {
			c.State, c.NextAttempt = rental.Failed, time.Time{}
		} else if c.Goal != rental.Capture && c.Goal != rental.Release {
			c.State = rental.Declined
		}
	case 2:
		if c.Kind != rental.RefundCharge && c.Goal != rental.Capture && c.Goal != rental.Release {
			c.State, c.NextAttempt = rental.RequiresAction, time.Time{}
		}
	default:
		carryOut(c, l.now)
	}
	if !was.MayBecome(c.State) {
		t.Fatalf("the state %s cannot follow %+v", c.State, was)
	}
}

// check verifies what must be true of the booking at any time.
func (l *model) check(t *rapid.T) {
	price, err := l.tariff.Over(l.Start, l.End)
	if err != nil || price != l.Price {
		t.Fatalf("the price is %+v, want %+v (%v)", l.Price, price, err)
	}
	var rent, fees, taken, back rental.Minor
	count, settling := map[rental.ChargeKind]int{}, false
	for _, c := range l.Charges {
		count[c.Kind]++
		if c.Currency != "EUR" || c.Booking != l.ID || c.Amount < 0 || c.Number != count[c.Kind] {
			t.Fatalf("charge %+v has a wrong currency, booking, amount or number", c)
		}
		switch c.Kind {
		case rental.StartCharge, rental.ExtensionCharge, rental.EndCharge:
			if c.Goal != rental.Release || c.State == rental.Paid {
				rent += c.Amount
			}
			settling = settling || l.State == rental.Completed && !c.State.IsFinal()
		case rental.FeeCharge:
			fees += c.Amount
		case rental.DepositCharge:
			byItself := c.Goal == rental.Capture && l.captured == 0 // for what the card did not pay
			if byItself {
				rent += c.CaptureAmount
			}
			if c.Amount != l.Price.Deposit || c.CaptureAmount > c.Amount || !byItself && c.CaptureAmount != l.captured ||
				c.State == rental.Captured && c.Settled > c.CaptureAmount {
				t.Fatalf("%d was to be captured of the deposit %+v", l.captured, c)
			}
		}
		if c.Kind != rental.RefundCharge && (c.State == rental.Paid || c.State == rental.Captured) {
			taken += c.Settled
			var given rental.Minor
			for _, r := range l.Charges {
				if r.Refunds == c.ID && r.State != rental.Failed {
					given += r.Amount
				}
			}
			if given > c.Settled {
				t.Fatalf("%d was refunded of the charge %+v", given, c)
			}
			back += given
		}
	}
	want := rental.Minor(0)
	if l.started {
		want = l.Price.Rental()
	}
	if rent != want && !settling || fees != l.fees {
		t.Fatalf("charged %d for the rental, want %d; fees %d, want %d", rent, want, fees, l.fees)
	}
	if l.started != (l.State == rental.Active || l.State == rental.Completed) || l.Extensions > rental.MaxExtensions ||
		count[rental.StartCharge] > 1 || count[rental.DepositCharge] > 1 || count[rental.ExtensionCharge] > l.Extensions || back > taken {
		t.Fatalf("booking with a wrong state, or too many extensions, charges or refunds: %+v", l.BookingDetails)
	}
	p := l.Payment()
	settled := p.Status == rental.PaymentPaid || p.Status == rental.PaymentRefunded || p.Status == rental.PaymentPartiallyRefunded
	if !slices.Contains(rental.PaymentStatuses, p.Status) || settled == p.PaidAt.IsZero() {
		t.Fatalf("payment %+v of the charges %+v", p, l.Charges)
	}
	if settled && taken < rent+fees {
		t.Fatalf("the payment is %s although %d of %d was taken", p.Status, taken, rent+fees)
	}
}

func TestBooking_AmountsAreRightAfterAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newModel(t)
		actions := l.decisions()
		actions[""] = l.check
		t.Repeat(actions)
	})
}
