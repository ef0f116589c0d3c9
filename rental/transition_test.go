package rental_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// kept returns what the client has paid and did not get back, and what is held.
func kept(d rental.BookingDetails) (net, held rental.Minor) {
	p := d.Payment()
	return p.Charged - p.Refunded, p.Held
}

// settleAll carries out what is due, as a processor does that refuses nothing, and what follows.
func settleAll(d *rental.BookingDetails, now time.Time) {
	for i := 0; i < len(d.Charges); i++ {
		if !d.Charges[i].NextAttempt.IsZero() && !d.Charges[i].State.IsFinal() {
			carryOut(&d.Charges[i], now)
			*d = after(*d, rental.SettleUp(*d, now))
		}
	}
}

// A rental by a tariff or by the hour, with starts that fail, pauses and extensions, is charged
// once for what it was, and a start that fails costs nothing, whenever its payments come through.
func TestTransition_MoneyIsRightAfterAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := upcoming()
		d.Terms.Rules = rental.DefaultRules
		if rapid.Bool().Draw(t, "nothing at the start") {
			d.Terms.Rules.ChargeAtStart = rental.ChargeNothing
		}
		if rapid.Bool().Draw(t, "by a tariff") {
			d.Plan = &rental.Plan{
				Version: 1, Minute: rental.Minor(rapid.Int64Range(0, 50).Draw(t, "minute")),
				Hour: rapid.SampledFrom([]rental.Minor{0, 1_200}).Draw(t, "hour"),
				Day:  rental.Minor(rapid.Int64Range(0, 9_000).Draw(t, "day")), Kilometre: 25, PauseMinute: 5,
				Minimum: rental.Minor(rapid.Int64Range(0, 900).Draw(t, "minimum")), Deposit: d.Price.Deposit,
			}
			price, _, err := d.Plan.Price("EUR", d.Price.Tax, rental.Usage{Time: d.End.Sub(d.Start)})
			require.NoError(t, err)
			d.Price = price
		}
		if rapid.Bool().Draw(t, "without a deposit") {
			d.Price.Deposit = 0
		}
		now := start
		for range rapid.IntRange(0, 3).Draw(t, "failed starts") {
			failStart(t, &d, now)
		}
		change, err := d.Open(now, rental.StartRental, telematics.Client)
		if err != nil || change.Booking != d.Booking || len(change.Charges) == 0 {
			t.Fatalf("start: %+v, %v", change, err)
		}
		if rapid.Bool().Draw(t, "by hand, not paid yet") {
			d = after(d, must(d.Begin(now)))
			d.StartMetres = 1_000_000
		} else {
			d = after(d, change)
			settleAll(&d, now)
			if p := d.StartPayment(); p != rental.PaymentMade {
				t.Fatalf("payment %v of %+v", p, d.Charges)
			}
			d = after(d, must(d.Activate(now, now, 1_000_000)))
			if net, held := kept(d); net == 0 && held == 0 && d.Price.Total() > 0 ||
				net == 0 && d.Payment().Status == rental.PaymentPaid && d.Price.Rental() > 0 {
				t.Fatalf("a rental without a charge or a hold, or said to be paid: %+v", d.Charges)
			}
		}
		var captured rental.Minor
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.Int64Range(1, 100).Draw(t, "minutes")) * time.Minute)
			last := &d.Charges[len(d.Charges)-1]
			if deposit := slices.IndexFunc(d.Charges, func(c rental.Charge) bool {
				return c.State == rental.Authorized && c.Goal == rental.Hold
			}); deposit >= 0 && rapid.IntRange(0, 4).Draw(t, "hold") == 0 {
				if c := &d.Charges[deposit]; rapid.Bool().Draw(t, "captured") {
					captured = rental.Minor(rapid.Int64Range(1, int64(c.Settled)).Draw(t, "capture"))
					d = after(d, must(d.CaptureDeposit(now, captured, "scratch")))
					carryOut(&d.Charges[deposit], now)
				} else {
					c.State, c.Settled, c.DeclineCode = rental.Released, 0, rental.CodeExpired
				}
				d = after(d, rental.SettleUp(d, now))
			} else if last.State == rental.Pending && last.Goal == "" && rapid.Bool().Draw(t, "refused") {
				last.State, last.DeclineCode = rental.Declined, "insufficient_funds"
				d = after(d, rental.SettleUp(d, now))
			} else if last.Added > 0 && !last.State.IsFinal() && rapid.Bool().Draw(t, "taken back") {
				last.State = rental.Released
				back := must(d.TakeBack(last.ID))
				d.Booking = back.Booking
				d = after(d, rental.SettleUp(d, now))
			} else if rapid.Bool().Draw(t, "extend") && d.CanExtend(now) {
				more := time.Duration(rapid.Int64Range(1, 200).Draw(t, "hours")) * time.Hour
				d = after(d, must(d.Extend(now, d.End.Add(more), telematics.Client)))
				if rapid.Bool().Draw(t, "paid immediately") {
					settleAll(&d, now)
				}
			} else if d.PausedSince.IsZero() {
				d = after(d, must(d.Pause(now)))
			} else {
				d = after(d, must(d.Resume(now)))
			}
		}
		now = now.Add(time.Duration(rapid.Int64Range(1, 1_500).Draw(t, "minutes")) * time.Minute)
		metres := 1_000_000 + rapid.Int64Range(0, 300_000).Draw(t, "metres")
		d.Transition = &rental.Transition{Kind: rental.EndRental, State: rental.TransitionOpen}
		for rounds, done := 0, false; !done; rounds++ {
			var c rental.Change
			if c, done, err = d.Close(now, now, metres); err != nil || rounds > 1 {
				t.Fatalf("after %d rounds: %v, %+v", rounds, err, d.Charges)
			}
			d = after(d, c)
			for i := range d.Charges { // what was withdrawn may have been paid before
				if c := &d.Charges[i]; c.Kind != rental.DepositCharge && c.Goal == rental.Release && !c.State.IsFinal() {
					if carryOut(c, now); rapid.Bool().Draw(t, "paid before") {
						c.State, c.Settled, c.PaidAt = rental.Paid, c.Amount, now
					}
					d = after(d, rental.SettleUp(d, now))
				}
			}
		}
		d.Transition = nil
		settleSomehow(t, &d, now)
		if p := d.Payment(); !p.Final || p.Status == rental.PaymentPending || p.Status == rental.PaymentAuthorized {
			t.Fatalf("when all is settled the payment is %+v: %+v", p, d.Charges)
		}
		if net, held := kept(d); net != d.Price.Rental()+captured || held != 0 || d.State != rental.Completed || !d.PausedSince.IsZero() {
			t.Fatalf("the client paid %d, of %d is held, for %+v: %+v", net, held, d.Booking, d.Charges)
		}
	})
}

// settleSomehow carries out what an ended rental owes and gives back, as a processor does that
// refuses cards, ends a hold, and finds out late what was paid.
func settleSomehow(t *rapid.T, d *rental.BookingDetails, now time.Time) {
	for refusals := 4; ; *d = after(*d, rental.SettleUp(*d, now)) {
		var due []*rental.Charge
		for i := range d.Charges {
			if c := &d.Charges[i]; !c.State.IsFinal() && (c.Goal != rental.Hold || c.State != rental.Authorized) {
				due = append(due, c)
			}
		}
		if len(due) == 0 {
			return
		}
		c := rapid.SampledFrom(due).Draw(t, "charge")
		outcome := rapid.IntRange(0, 5).Draw(t, "outcome")
		switch {
		case outcome < 3 && refusals > 0 && c.Goal == "" && c.Kind != rental.RefundCharge:
			c.State = []rental.ChargeState{rental.Declined, rental.Failed, rental.RequiresAction}[outcome]
			refusals--
		case outcome == 0 && c.State == rental.Authorized:
			c.State, c.Settled, c.DeclineCode = rental.Released, 0, rental.CodeExpired
		case outcome == 0 && c.Kind != rental.DepositCharge && c.Goal == rental.Release:
			// It was paid before.
			c.State, c.Settled, c.PaidAt = rental.Paid, c.Amount, now
		default:
			carryOut(c, now)
		}
	}
}

func must(c rental.Change, err error) rental.Change {
	if err != nil {
		panic(err)
	}
	return c
}

// failStart begins a start and takes it back, while its payments may still come through.
func failStart(t *rapid.T, d *rental.BookingDetails, now time.Time) {
	*d = after(*d, must(d.Open(now, rental.StartRental, telematics.Client)))
	comeThrough := func() {
		for i := range d.Charges {
			c := &d.Charges[i]
			if c.State.IsFinal() || c.NextAttempt.IsZero() {
				continue
			}
			switch outcome := rapid.IntRange(0, 3).Draw(t, "outcome"); {
			case outcome == 0 && c.Kind == rental.StartCharge: // requested before it was taken back
				c.State, c.Settled, c.PaidAt, c.NextAttempt = rental.Paid, c.Amount, now, time.Time{}
			case outcome == 1 && c.Goal != rental.Release && c.Kind != rental.RefundCharge:
				c.State = rental.Declined
			case outcome > 1:
				carryOut(c, now)
			}
		}
	}
	comeThrough()
	for range 100 {
		c, done := d.TakeBackStart(now)
		if *d = after(*d, c); done {
			break
		}
		comeThrough()
	}
	if i := slices.IndexFunc(d.Charges, func(c rental.Charge) bool { return c.Goal == rental.Hold }); i >= 0 {
		t.Fatalf("a deposit is still wanted: %+v", d.Charges[i])
	}
	settleAll(d, now) // refunds
	if net, held := kept(*d); net != 0 || held != 0 {
		t.Fatalf("a start that failed costs %d, and holds %d: %+v", net, held, d.Charges)
	}
}

// Nothing opens before each payment of the start is made, and a start has not failed while one of
// them may still come through.
func TestStartPayment_OfEachOfTheTwoPayments(t *testing.T) {
	for state, want := range map[rental.ChargeState]rental.PaymentProgress{
		rental.Pending: rental.PaymentAwaits, rental.Unknown: rental.PaymentAwaits, rental.RequiresAction: rental.PaymentNeedsOwner,
		rental.Declined: rental.PaymentRefused, rental.Failed: rental.PaymentRefused,
		rental.Released: rental.PaymentRefused, // the processor has ended the hold
	} {
		for open := range 2 {
			if state == rental.Released && open == 0 {
				continue // a start charge is released once the start is taken back
			}
			d := upcoming()
			d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
			settleAll(&d, start)
			d.Charges[open].State, d.Charges[open].Settled = state, 0
			if got := d.StartPayment(); got != want {
				t.Errorf("%s %s: %v, want %v", d.Charges[open].Kind, state, got, want)
			}
			other := &d.Charges[1-open]
			other.State, other.Goal, other.Settled = rental.Released, rental.Release, 0
			if _, done := d.TakeBackStart(start); done && state != rental.Released {
				t.Errorf("%s %s: taken back already", d.Charges[open].Kind, state)
			}
		}
	}
	d := upcoming()
	d.Price.Deposit = 0
	d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
	d.Charges[0].State = rental.Waived
	assert.Equal(t, d.StartPayment(), rental.PaymentMade, "of a rental that is too cheap for the processor")
}

// A refund that the bank returns is an administrator's: neither the same start nor a later one
// requests it again.
func TestTakeBackStart_RefundsAChargeOnce(t *testing.T) {
	d := upcoming()
	d.Terms.Rules = rental.DefaultRules
	for n := range 2 {
		d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
		settleAll(&d, start)
		// The deposit is not released yet; each instance's clock is behind that of the one before.
		for i := range 3 {
			c, done := d.TakeBackStart(start.Add(-time.Duration(i) * time.Second))
			if d = after(d, c); done {
				t.Fatal("done while the deposit is held")
			}
			for i := range d.Charges {
				if d.Charges[i].Kind == rental.RefundCharge {
					d.Charges[i].State, d.Charges[i].NextAttempt = rental.Failed, time.Time{}
				}
			}
		}
		settleAll(&d, start)
		refunds := slices.DeleteFunc(slices.Clone(d.Charges), func(c rental.Charge) bool { return c.Kind != rental.RefundCharge })
		if len(refunds) != n+1 {
			t.Errorf("%d starts failed, and %d refunds were requested: %+v", n+1, len(refunds), refunds)
		}
	}
	d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
	settleAll(&d, start)
	assert.Equal(t, d.StartPayment(), rental.PaymentMade, "the payment of a third start")
}

// A client whose start failed has paid nothing, and after another start has paid for that one.
func TestPayment_AStartThatWasTakenBackDoesNotCount(t *testing.T) {
	d := upcoming()
	d.Terms.Rules = rental.DefaultRules
	startPaid := func() {
		d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
		settleAll(&d, start)
	}
	startPaid()
	for done := false; !done; settleAll(&d, start) {
		var c rental.Change
		c, done = d.TakeBackStart(start)
		d = after(d, c)
		for i := range d.Charges {
			if c := &d.Charges[i]; c.Goal == rental.Release && c.Kind == rental.DepositCharge {
				c.State = rental.Released
			}
		}
	}
	if p := d.Payment(); p.Status != rental.PaymentPending || p.Charged != p.Refunded || p.Charged == 0 {
		t.Errorf("after a start that failed: %+v", p)
	}
	startPaid()
	for _, when := range []string{"is paid", "has opened the vehicle"} {
		if p := d.Payment(); p.Status != rental.PaymentPaid {
			t.Errorf("after another start %s: %+v", when, p)
		}
		d.State, d.ActualStart = rental.Active, start.Add(time.Minute)
	}
}

// Staff end by hand what was begun with a hold alone: its price is charged.
func TestFinish_ChargesWhatTheStartDidNot(t *testing.T) {
	for charging, want := range map[rental.StartCharging]rental.Minor{rental.ChargeNothing: 8_690, rental.ChargeEstimate: 0} {
		d := planned()
		d.Terms.Rules = rental.DefaultRules
		d.Terms.Rules.ChargeAtStart = charging
		d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
		settleAll(&d, start)
		d = after(d, must(d.Activate(start, start, 0)))
		d = after(d, must(d.Pause(start.Add(time.Hour))))
		c := must(d.Finish(start.Add(2 * time.Hour)))
		var charged rental.Minor
		for _, c := range c.Charges {
			charged += c.Amount
		}
		if charged != want || !c.Booking.PausedSince.IsZero() {
			t.Errorf("%s: the end charges %d, paused since %v; want %d, and no pause", charging, charged, c.Booking.PausedSince, want)
		}
	}
}

func TestTransition_AStartThatIsGivenUpIsNotOrderedAgain(t *testing.T) {
	x := rental.Transition{Kind: rental.StartRental, State: rental.TransitionOpen, Step: rental.StepConfirm}
	if _, err := x.Cancel(); err != nil || x.Wish != rental.GiveUp {
		t.Fatalf("wish %q, %v", x.Wish, err)
	}
	if activity, err := x.Join(""); err != nil || activity != "" || x.Wish != rental.GiveUp {
		t.Errorf("a later request: %q, %v, wish %q; want it still given up", activity, err, x.Wish)
	}
}

func TestControl_NothingOpensInAPauseOrBeyondTheEnd(t *testing.T) {
	for kind, want := range map[rental.TransitionKind]telematics.Code{
		rental.PauseRental: rental.TransitionIsOpen, rental.EndRental: rental.TransitionIsOpen, rental.ResumeRental: "",
	} {
		d := active(t)
		d.Transition = &rental.Transition{Kind: kind, State: rental.TransitionOpen, Step: rental.StepConfirm}
		refusal := wantControl(t, string(kind), d, start.Add(time.Hour), want)
		if refusal != nil && refusal.RetryAfter != 5*time.Second {
			t.Errorf("an unlock during a %s is to be repeated after %v, want 5s", kind, refusal.RetryAfter)
		}
	}
	paused := active(t)
	paused.PausedSince = start
	_ = wantControl(t, "paused", paused, start.Add(time.Hour), rental.BookingStateConflict)
	late := active(t)
	late.Terms.UnlockGrace = time.Hour
	_ = wantControl(t, "within the grace", late, late.End.Add(time.Hour-1), "")
	_ = wantControl(t, "overdue", late, late.End.Add(time.Hour), rental.BookingOverdue)
}

func TestClose_OfWhatTheTimeCost(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rental.BookingDetails)
		want   rental.Minor // of the refund; negative: of a charge
	}{
		"paid in full": {func(*rental.BookingDetails) {}, 0},
		"taken with another amount, as the processor rounds": {func(d *rental.BookingDetails) { d.Charges[0].Settled += 4 }, 0},
		"cheaper by now": {func(d *rental.BookingDetails) {
			d.Plan = &rental.Plan{Version: 1, Hour: 1_000}
			fine := must(d.Fine(start, rental.Fee{Kind: "cleaning", Amount: 20_000, Reason: "dog"}))
			*d = after(*d, fine)
			settleAll(d, start)
		}, 13_200 - 1_100},
		"cheaper by now, and staff have given most of it back": {func(d *rental.BookingDetails) {
			d.Plan = &rental.Plan{Version: 1, Hour: 1_000}
			*d = after(*d, must(d.Refund(start, 10_000, "the heating was broken")))
			settleAll(d, start)
		}, 3_200},
		"not paid yet": {func(d *rental.BookingDetails) { d.Charges[0].State, d.Charges[0].Settled = rental.Unknown, 0 }, 0},
		"too small to be paid at the start": {func(d *rental.BookingDetails) {
			d.Charges[0].State, d.Charges[0].Settled = rental.Waived, 0
		}, -13_200},
		"an extension that was not paid": {func(d *rental.BookingDetails) {
			d.Charges = append(d.Charges, rental.Charge{Kind: rental.ExtensionCharge, State: rental.Released, Amount: 3_300})
		}, 0},
		"paused": {func(d *rental.BookingDetails) {
			d.Plan = &rental.Plan{Version: 1, Minute: 100, PauseMinute: 10}
			*d = after(*d, must(d.Pause(start.Add(10*time.Minute))))
			*d = after(*d, must(d.Resume(start.Add(30*time.Minute))))
			*d = after(*d, must(d.Pause(start.Add(40*time.Minute))))
		}, 13_200 - 2_000*11/10 - 300*11/10},
		"a price that is out of range": {func(d *rental.BookingDetails) {
			d.Plan = &rental.Plan{Version: 1, Minimum: rental.MaxAmount}
		}, 0},
	} {
		d := active(t)
		c.change(&d)
		change, done, err := d.Close(start.Add(50*time.Minute), start.Add(50*time.Minute), 0)
		if err != nil || !done {
			t.Errorf("%s: done %v, %v", name, done, err)
			continue
		}
		var got rental.Minor
		for _, charge := range change.Charges {
			i := slices.IndexFunc(d.Charges, func(c rental.Charge) bool { return c.ID == charge.Refunds })
			switch {
			case charge.Kind != rental.RefundCharge:
				got -= charge.Amount
			case d.Charges[i].Kind != rental.StartCharge:
				t.Errorf("%s: refunds the %s", name, d.Charges[i].Kind)
			default:
				got += charge.Amount
			}
		}
		if got != c.want || got == 0 && len(change.Charges) > 0 {
			t.Errorf("%s: refunded %d, want %d: %+v", name, got, c.want, change.Charges)
		}
	}
}

func TestTransition_TimeStopsAtTheRequestUnlessTheVehicleIsDriven(t *testing.T) {
	locked := start.Add(time.Hour)
	for name, c := range map[string]struct {
		age      time.Duration // of the odometer that was known at the request
		metres   int64         // that it says when the vehicle is locked
		change   func(*rental.Transition)
		drivesOn bool
	}{
		"driven":                             {metres: 30_000, drivesOn: true},
		"moved out of the garage":            {metres: 1_500},
		"an odometer of before the last way": {age: 5 * time.Minute, metres: 20_000},
		"an old odometer, driven further":    {age: 5 * time.Minute, metres: 24_000, drivesOn: true},
		"another odometer":                   {metres: 400_000},
		"none by now":                        {metres: -1_000_000},
		"none at the request":                {metres: 30_000, change: func(x *rental.Transition) { x.Metres = 0 }},
		"requested in the version before":    {metres: 30_000, change: func(x *rental.Transition) { x.MetresAt = time.Time{} }},
		"staff end it":                       {metres: 30_000, change: func(x *rental.Transition) { x.Override = "towed" }},
	} {
		x := rental.Transition{Kind: rental.EndRental, Requested: start}
		x.Metres, x.MetresAt = 1_000_000, start.Add(-c.age)
		if c.change != nil {
			c.change(&x)
		}
		at, metres := x.ReturnedAt(locked, 1_000_000+c.metres)
		if want := map[bool]time.Time{false: start, true: locked}[c.drivesOn]; !at.Equal(want) || c.drivesOn != (metres != x.Metres) {
			t.Errorf("%s: returned at %v with %d m, want %v", name, at, metres, want)
		}
	}
}

func TestTransition_AStepThatIsTakenAgainIsShownOnce(t *testing.T) {
	x := rental.Transition{Kind: rental.StartRental, State: rental.TransitionOpen, Step: rental.StepPay}
	x.Enter(rental.StepCommand, start)
	shown := func() string {
		var steps []string
		for _, s := range x.ShownSteps() {
			steps = append(steps, string(s.Step)+" "+string(s.State))
		}
		return strings.Join(steps, ", ")
	}
	for range 3 {
		x.Enter(rental.StepConfirm, start)
		x.OrderAgain(start)
		assert.Equal(t, shown(), "check done, pay done, command running, book pending", "steps")
	}
	x.GiveUp(start, &telematics.Error{Code: telematics.CommandRejected})
	assert.Equal(t, shown(), "check done, pay done, command failed", "steps")
}

// The same request has the same transition: to repeat it with its key is of no use.
func TestTransition_FailureIsNotRetryable(t *testing.T) {
	why := &telematics.Error{Code: telematics.TelematicsUnavailable, Retryable: true, RetryAfter: time.Second}
	for name, fail := range map[string]func(*rental.Transition){
		"a step that fails":       func(x *rental.Transition) { x.Fail(why, rental.StepRefund, start) },
		"a transition that fails": func(x *rental.Transition) { x.GiveUp(start, why) },
	} {
		var x rental.Transition
		fail(&x)
		if got := x.Failure.Err(); got.Code != why.Code || got.Retryable || got.RetryAfter != time.Second {
			t.Errorf("%s: %+v, want it not retryable, after %v", name, got, time.Second)
		}
	}
}

func TestOpen_OnlyWhatTheBookingAllows(t *testing.T) {
	early := start.Add(-16 * time.Minute)
	started := active(t)
	paused := after(started, must(started.Pause(start.Add(time.Hour))))
	unpaid := after(paused, rental.Change{Booking: paused.Booking})
	unpaid.Charges[0].State = rental.Declined
	ending := active(t)
	ending.Transition = &rental.Transition{Kind: rental.EndRental, State: rental.TransitionOpen, Step: rental.StepCommand}
	moving := upcoming()
	moving.Transition = &rental.Transition{Kind: rental.StartRental, State: rental.TransitionOpen, Step: rental.StepPay}
	for name, c := range map[string]struct {
		d    rental.BookingDetails
		kind rental.TransitionKind
		at   time.Time
		by   telematics.Role
		want telematics.Code
	}{
		"a start":                    {upcoming(), rental.StartRental, start, telematics.Client, ""},
		"a start that is too early":  {upcoming(), rental.StartRental, early, telematics.Client, rental.TooEarly},
		"an early start by staff":    {upcoming(), rental.StartRental, early, telematics.Admin, ""},
		"a second start":             {started, rental.StartRental, start, telematics.Client, rental.BookingStateConflict},
		"a start in progress":        {moving, rental.StartRental, start, telematics.Client, rental.TransitionIsOpen},
		"an end before the start":    {upcoming(), rental.EndRental, start, telematics.Client, rental.BookingNotActive},
		"a pause before the start":   {upcoming(), rental.PauseRental, start, telematics.Client, rental.BookingNotActive},
		"a second pause":             {paused, rental.PauseRental, start, telematics.Client, rental.BookingStateConflict},
		"a resumption without pause": {started, rental.ResumeRental, start, telematics.Client, rental.BookingStateConflict},
		"a resumption":               {paused, rental.ResumeRental, start.Add(2 * time.Hour), telematics.Client, ""},
		"a resumption, not paid":     {unpaid, rental.ResumeRental, start.Add(2 * time.Hour), telematics.Client, rental.PaymentRequired},
		"a pause while it ends":      {ending, rental.PauseRental, start, telematics.Client, rental.TransitionIsOpen},
		"an end of a paused rental":  {paused, rental.EndRental, start.Add(2 * time.Hour), telematics.Client, ""},
		"a late end":                 {started, rental.EndRental, start.Add(90 * time.Hour), telematics.Client, ""},
	} {
		_, err := c.d.Open(c.at, c.kind, c.by)
		if codeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if moving.CanCancel(start.Add(-3*time.Hour)) || moving.CanExtend(start) {
		t.Error("it can be cancelled or extended while a transition is open")
	}
	moving.MoveTo.Vehicle.ID = 6
	for name, err := range map[string]error{
		"finish": second(moving.Finish(start)), "move": second(rental.Move(moving)), "begin": second(moving.Begin(start)),
		"cancel": second(moving.Cancel(start.Add(-3*time.Hour), telematics.Client)),
		"extend": second(moving.Extend(start, moving.End.Add(time.Hour), telematics.Client)),
	} {
		if codeOf(err) != rental.TransitionIsOpen {
			t.Errorf("%s while a transition is open: %v", name, err)
		}
	}
}

func second(_ rental.Change, err error) error { return err }

// codeOf returns the code of an error; empty: none.
func codeOf(err error) telematics.Code {
	var known *telematics.Error
	if !errors.As(err, &known) {
		return ""
	}
	return known.Code
}
