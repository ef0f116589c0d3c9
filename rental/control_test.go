package rental_test

import (
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// wantControl checks the code with which an unlock is refused; empty: it is not. Locking is always
// possible.
func wantControl(t *testing.T, what string, d rental.BookingDetails, now time.Time, code telematics.Code) *telematics.Error {
	t.Helper()
	if refusal := d.Control(now, telematics.Lock); refusal != nil {
		t.Errorf("%s: the client cannot lock: %v", what, refusal)
	}
	refusal := d.Control(now, telematics.Unlock)
	switch {
	case code == "" && refusal != nil:
		t.Errorf("%s: unlock is refused: %v", what, refusal)
	case code != "" && (refusal == nil || refusal.Code != code || refusal.Outcome != telematics.NotExecuted):
		t.Errorf("%s: unlock: %v, want %s", what, refusal, code)
	}
	return refusal
}

func TestControl_NoUnlockBeforeTheFirstPaymentHasAResult(t *testing.T) {
	begun := func(change func(rent, deposit *rental.Charge)) rental.BookingDetails {
		d := active(t)
		d.Terms.PaymentWait = rental.DefaultPaymentWait
		change(&d.Charges[0], &d.Charges[1])
		return d
	}
	for what, c := range map[string]struct {
		change        func(rent, deposit *rental.Charge)
		within, later telematics.Code
	}{
		"paid and held":   {func(_, _ *rental.Charge) {}, "", ""},
		"rental pending":  {func(rent, _ *rental.Charge) { rent.State = rental.Pending }, rental.PaymentAwaited, ""},
		"rental unknown":  {func(rent, _ *rental.Charge) { rent.State = rental.Unknown }, rental.PaymentAwaited, ""},
		"deposit pending": {func(_, deposit *rental.Charge) { deposit.State = rental.Pending }, rental.PaymentAwaited, ""},
		"deposit unknown": {func(_, deposit *rental.Charge) { deposit.State = rental.Unknown }, rental.PaymentAwaited, ""},
		"deposit being captured": {
			func(_, deposit *rental.Charge) { deposit.State, deposit.Goal = rental.Unknown, rental.Capture }, "", "",
		},
		"both waived": {func(rent, deposit *rental.Charge) { rent.State, deposit.State = rental.Waived, rental.Waived }, "", ""},
		"hold ended":  {func(_, deposit *rental.Charge) { deposit.State = rental.Released }, "", ""},
		"rental declined": {
			func(rent, _ *rental.Charge) { rent.State = rental.Declined }, rental.PaymentRequired, rental.PaymentRequired,
		},
		"declined, tried again": {func(rent, _ *rental.Charge) {
			rent.State, rent.DeclineCode = rental.Unknown, "insufficient_funds"
		}, rental.PaymentRequired, rental.PaymentRequired},
		"rental refused": {
			func(rent, _ *rental.Charge) { rent.State, rent.DeclineCode = rental.Failed, rental.CodeRefused }, rental.PaymentAwaited, "",
		},
		"deposit cancelled": {func(_, deposit *rental.Charge) {
			deposit.State, deposit.DeclineCode = rental.Failed, rental.CodeCanceled
		}, rental.PaymentAwaited, ""},
	} {
		d := begun(c.change)
		refusal := wantControl(t, what, d, start.Add(rental.DefaultPaymentWait-1), c.within)
		if c.within == rental.PaymentAwaited && (!refusal.Retryable || refusal.RetryAfter != 2*time.Second) {
			t.Errorf("%s: %+v, want it repeated after 2 s", what, refusal)
		}
		_ = wantControl(t, what+", later", d, start.Add(rental.DefaultPaymentWait), c.later)
		d.Terms.PaymentWait = 0
		_ = wantControl(t, what+", no wait", d, start.Add(time.Second), c.later)
	}
}

// An extension that is being charged does not lock a client out who has paid the rental.
func TestControl_ExtensionIsOwedOnlyIfItsClientCanMendIt(t *testing.T) {
	for what, c := range map[string]struct {
		extension rental.Charge
		code      telematics.Code
	}{
		"pending":         {rental.Charge{State: rental.Pending}, ""},
		"unknown":         {rental.Charge{State: rental.Unknown}, ""},
		"waived":          {rental.Charge{State: rental.Waived, DeclineCode: rental.CodeTooSmall}, ""},
		"refused":         {rental.Charge{State: rental.Failed, DeclineCode: rental.CodeRefused}, ""},
		"cancelled":       {rental.Charge{State: rental.Failed, DeclineCode: rental.CodeCanceled}, ""},
		"no card":         {rental.Charge{State: rental.Declined, DeclineCode: rental.CodeNoCard}, rental.PaymentRequired},
		"card gone":       {rental.Charge{State: rental.Declined, DeclineCode: rental.CodeCardGone}, rental.PaymentRequired},
		"stolen card":     {rental.Charge{State: rental.Failed, DeclineCode: "stolen_card"}, rental.PaymentRequired},
		"declined, tried": {rental.Charge{State: rental.Unknown, DeclineCode: "generic_decline"}, rental.PaymentRequired},
		"waits for its owner": {
			rental.Charge{State: rental.RequiresAction, DeclineCode: "authentication_required"}, rental.PaymentRequired,
		},
		"refused, tried again": {rental.Charge{State: rental.Unknown, DeclineCode: rental.CodeRefused}, ""},
		"taken back":           {rental.Charge{State: rental.Released, DeclineCode: "insufficient_funds"}, ""},
	} {
		d := active(t)
		d.Terms.PaymentWait = rental.DefaultPaymentWait
		c.extension.Kind, c.extension.Amount = rental.ExtensionCharge, 29
		d.Charges = append(d.Charges, c.extension)
		_ = wantControl(t, what, d, start.Add(time.Minute), c.code)
		if can := d.CanExtend(start.Add(time.Minute)); c.code == "" && !can {
			t.Errorf("%s: the booking cannot be extended again", what)
		}
	}
}

// A client who has chosen another card has done what a client can do: a processor that gives no
// answer locks no client out for longer than after a start.
func TestControl_AnotherCardIsWaitedForAsLongAsTheFirst(t *testing.T) {
	mended := start.Add(2 * time.Hour)
	for what, c := range map[string]rental.Charge{
		"tried again":         {State: rental.Unknown, DeclineCode: "insufficient_funds"},
		"not yet":             {State: rental.Declined, DeclineCode: "insufficient_funds"},
		"after it failed":     {State: rental.Failed, DeclineCode: "stolen_card"},
		"instead of its bank": {State: rental.RequiresAction, DeclineCode: "authentication_required"},
	} {
		for _, kind := range []rental.ChargeKind{rental.StartCharge, rental.ExtensionCharge} {
			d := active(t)
			d.Terms.PaymentWait = rental.DefaultPaymentWait
			c.Kind, c.Mended = kind, time.Time{}
			d.Charges[0] = c
			_ = wantControl(t, what+", no other card", d, mended.Add(time.Hour), rental.PaymentRequired)
			d.Charges[0].Mended = mended
			_ = wantControl(t, what, d, mended.Add(rental.DefaultPaymentWait-1), rental.PaymentAwaited)
			_ = wantControl(t, what+", later", d, mended.Add(rental.DefaultPaymentWait), "")
		}
	}
}
