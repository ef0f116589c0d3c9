package rental_test

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
)

func TestPayment_Status(t *testing.T) {
	paidAt := start.Add(time.Minute)
	charge := func(kind rental.ChargeKind, state rental.ChargeState) rental.Charge {
		c := rental.Charge{Kind: kind, State: state, Amount: 1_000}
		if kind == rental.DepositCharge {
			c.Goal = rental.Hold
		}
		if state == rental.Paid {
			c.Settled, c.PaidAt = 1_000, paidAt
		}
		return c
	}
	with := func(c rental.Charge, change func(*rental.Charge)) rental.Charge {
		change(&c)
		return c
	}
	const (
		rent, deposit, extension, fee, back = rental.StartCharge, rental.DepositCharge, rental.ExtensionCharge, rental.FeeCharge,
			rental.RefundCharge
		pending, unknown, action     = rental.Pending, rental.Unknown, rental.RequiresAction
		declined, failed, paid, held = rental.Declined, rental.Failed, rental.Paid, rental.Authorized
	)
	given := charge(rent, paid)
	capturing := with(charge(deposit, held), func(c *rental.Charge) { c.Goal, c.CaptureAmount = rental.Capture, 500 })
	captured := with(charge(deposit, rental.Captured), func(c *rental.Charge) { c.Goal, c.Settled = rental.Capture, 500 })
	releasing := func(s rental.ChargeState) rental.Charge {
		return with(charge(deposit, s), func(c *rental.Charge) { c.Goal = rental.Release })
	}
	refunded := func(amount rental.Minor) rental.Charge {
		return with(charge(back, paid), func(c *rental.Charge) { c.Settled, c.PaidAt = amount, paidAt.Add(time.Hour) })
	}
	later := with(charge(extension, paid), func(c *rental.Charge) { c.PaidAt = paidAt.Add(time.Minute) })

	for what, c := range map[string]struct {
		charges []rental.Charge
		want    rental.PaymentStatus
		paidAt  time.Time
	}{
		"no charges": {nil, rental.PaymentPending, time.Time{}},
		"just started": {
			[]rental.Charge{charge(rent, pending), charge(deposit, pending)}, rental.PaymentPending, time.Time{},
		},
		"paid, deposit pending": {[]rental.Charge{given, charge(deposit, pending)}, rental.PaymentPending, time.Time{}},
		"deposit held, rental pending": {
			[]rental.Charge{charge(rent, pending), charge(deposit, held)}, rental.PaymentAuthorized, time.Time{},
		},
		"deposit held, rental and fee": {
			[]rental.Charge{charge(rent, pending), charge(deposit, held), charge(fee, pending)}, rental.PaymentPending, time.Time{},
		},
		"deposit held, rental declined": {
			[]rental.Charge{charge(rent, declined), charge(deposit, held)}, rental.PaymentFailed, time.Time{},
		},
		"paid and held":    {[]rental.Charge{given, charge(deposit, held)}, rental.PaymentPaid, paidAt},
		"paid, no deposit": {[]rental.Charge{given}, rental.PaymentPaid, paidAt},
		"rental declined": {
			[]rental.Charge{charge(rent, declined), charge(deposit, pending)}, rental.PaymentFailed, time.Time{},
		},
		"all waived": {
			[]rental.Charge{charge(rent, rental.Waived), charge(deposit, rental.Waived)}, rental.PaymentPaid, time.Time{},
		},
		"rental refused as invalid": {[]rental.Charge{with(charge(rent, failed), func(c *rental.Charge) {
			c.DeclineCode = rental.CodeRefused
		})}, rental.PaymentPending, time.Time{}},
		"rental failed":    {[]rental.Charge{charge(rent, failed)}, rental.PaymentFailed, time.Time{}},
		"deposit declined": {[]rental.Charge{given, charge(deposit, declined)}, rental.PaymentFailed, time.Time{}},
		"owner must confirm the rental": {
			[]rental.Charge{charge(rent, action), charge(deposit, failed)}, rental.PaymentRequiresAction, time.Time{},
		},
		"owner must confirm the deposit": {[]rental.Charge{given, charge(deposit, action)}, rental.PaymentRequiresAction, time.Time{}},
		"extension pending": {
			[]rental.Charge{given, charge(deposit, held), charge(extension, pending)}, rental.PaymentPending, time.Time{},
		},
		"extension declined": {
			[]rental.Charge{given, charge(deposit, held), charge(extension, declined)}, rental.PaymentFailed, time.Time{},
		},
		"extension paid":                    {[]rental.Charge{given, charge(deposit, held), later}, rental.PaymentPaid, later.PaidAt},
		"extension first in the list":       {[]rental.Charge{later, given}, rental.PaymentPaid, later.PaidAt},
		"fee failed":                        {[]rental.Charge{given, charge(fee, failed)}, rental.PaymentFailed, time.Time{}},
		"fee of a cancelled booking":        {[]rental.Charge{charge(fee, paid)}, rental.PaymentPaid, paidAt},
		"deposit held, to be released":      {[]rental.Charge{given, releasing(held)}, rental.PaymentPaid, paidAt},
		"deposit unknown, to be released":   {[]rental.Charge{given, releasing(unknown)}, rental.PaymentPaid, paidAt},
		"deposit declined, to be released":  {[]rental.Charge{given, releasing(declined)}, rental.PaymentPaid, paidAt},
		"deposit released":                  {[]rental.Charge{given, releasing(rental.Released)}, rental.PaymentPaid, paidAt},
		"deposit released by the processor": {[]rental.Charge{given, charge(deposit, rental.Released)}, rental.PaymentPaid, paidAt},
		"capture pending":                   {[]rental.Charge{given, capturing}, rental.PaymentPending, time.Time{}},
		"capture done":                      {[]rental.Charge{given, captured}, rental.PaymentPaid, paidAt},
		"refund pending":                    {[]rental.Charge{given, charge(back, pending)}, rental.PaymentPaid, paidAt},
		"refund failed":                     {[]rental.Charge{given, charge(back, failed)}, rental.PaymentPaid, paidAt},
		"part refunded":                     {[]rental.Charge{given, refunded(999)}, rental.PaymentPartiallyRefunded, paidAt},
		"all refunded":                      {[]rental.Charge{given, refunded(1_000)}, rental.PaymentRefunded, paidAt},
		"rental refunded, capture not":      {[]rental.Charge{given, captured, refunded(1_000)}, rental.PaymentPartiallyRefunded, paidAt},
		"rental and capture refunded":       {[]rental.Charge{given, captured, refunded(1_500)}, rental.PaymentRefunded, paidAt},
		"refunded, then a fee pending": {
			[]rental.Charge{given, refunded(1_000), charge(fee, pending)}, rental.PaymentPending, time.Time{},
		},
		"refunded in part, another failed": {
			[]rental.Charge{given, refunded(1), charge(back, failed)}, rental.PaymentPartiallyRefunded, paidAt,
		},
	} {
		d := upcoming()
		d.Charges = c.charges
		got := d.Payment()
		// Of the sums, see TestTransition_MoneyIsRightAfterAnySequence.
		got.Charged, got.Refunded, got.Held = 0, 0, 0
		assert.Equal(t, got, (rental.Payment{Method: "Visa •••• 4242", Status: c.want, PaidAt: c.paidAt}), "%s: payment", what)
	}
}

func TestPayment_IsFinalOnceNothingIsToCome(t *testing.T) {
	for state, want := range map[rental.BookingState]bool{rental.Active: false, rental.Completed: true} {
		d := upcoming()
		d.State, d.Charges = state, []rental.Charge{
			{State: rental.Paid}, {Kind: rental.DepositCharge, State: rental.Released},
			{Kind: rental.RefundCharge, State: rental.Failed}, // it stays so
		}
		if d.Payment().Final != want {
			t.Errorf("%s: final is %t, want %t", state, !want, want)
		}
		d.Charges[1].State, d.Charges[1].Goal = rental.Authorized, rental.Release
		if d.Payment().Final {
			t.Errorf("%s: final, and the deposit is held", state)
		}
		for _, open := range []rental.Charge{
			{Kind: rental.RefundCharge, State: rental.Unknown}, {Kind: rental.FeeCharge, State: rental.Failed},
		} {
			if d.Charges[1] = open; d.Payment().Final {
				t.Errorf("%s: final, and the %s is %s", state, open.Kind, open.State)
			}
		}
	}
}

// By the agency's rules a start may charge nothing: the end does, unless the rental costs nothing.
func TestPayment_StatusByTheStateOfTheBooking(t *testing.T) {
	deposit := func(s rental.ChargeState) []rental.Charge {
		return []rental.Charge{{Kind: rental.DepositCharge, State: s, Goal: rental.Hold, Amount: 1_000}}
	}
	withdrawn := func(refund rental.ChargeState, back rental.Minor) []rental.Charge {
		return []rental.Charge{
			{ID: rental.ChargeID{1}, State: rental.Paid, Kind: rental.StartCharge, Goal: rental.Release, Amount: 2_000, Settled: 2_000},
			{
				Kind: rental.RefundCharge, State: refund, Refunds: rental.ChargeID{1}, Amount: back, Settled: back,
				Created: start.Add(time.Hour),
			},
		}
	}
	for what, c := range map[string]struct {
		state   rental.BookingState
		charges []rental.Charge
		want    rental.PaymentStatus
	}{
		"the deposit is held": {rental.Active, deposit(rental.Authorized), rental.PaymentAuthorized},
		"a fee is paid": {
			rental.Active, append(deposit(rental.Authorized), rental.Charge{Kind: rental.FeeCharge, State: rental.Paid}),
			rental.PaymentAuthorized,
		},
		"the hold has expired":      {rental.Active, deposit(rental.Released), rental.PaymentPending},
		"it has cost nothing":       {rental.Completed, deposit(rental.Released), rental.PaymentNotCharged},
		"a part of it was captured": {rental.Completed, deposit(rental.Captured), rental.PaymentPaid},
		"cancelled":                 {rental.Cancelled, nil, rental.PaymentNotCharged},
		"cancelled, with a fee": {
			rental.Cancelled, []rental.Charge{{Kind: rental.FeeCharge, State: rental.Pending}}, rental.PaymentPending,
		},
		// A start that is withdrawn may be paid all the same.
		"a part of a withdrawn start was kept": {rental.Completed, withdrawn(rental.Paid, 1_000), rental.PaymentPartiallyRefunded},
		"staff gave a withdrawn start back":    {rental.Completed, withdrawn(rental.Paid, 2_000), rental.PaymentRefunded},
		"the bank returned its refund":         {rental.Cancelled, withdrawn(rental.Failed, 2_000), rental.PaymentPaid},
	} {
		d := upcoming()
		d.State, d.Charges, d.Card = c.state, c.charges, nil
		if c.state == rental.Completed {
			d.ActualStart = start
		}
		assert.Equal(t, d.Payment().Method, "", "%s: the method without a card", what)
		assert.Equal(t, d.Payment().Status, c.want, what)
	}
}
