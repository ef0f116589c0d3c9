package money

import (
	"slices"
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/telematics"
)

// The laws of rentals; those of money apply, too.
const (
	lawPrice    = "a rental is charged once for what it was"
	lawDriven   = "no vehicle is opened without a rental that is paid or held"
	lawOneUser  = "a vehicle is in one rental at a time"
	lawLocked   = "the vehicle of an ended rental is locked and immobilised"
	lawInTime   = "no transition is open for longer than its limit"
	lawOrdered  = "each command of a transition is executed once"
	lawAnswered = "what was answered as done is on record"
)

// CheckRentals compares the accounts of a round of rentals.
func CheckRentals(e RentalEvidence) verdict.Report {
	a := &rentalAudit{audit: newAudit(e.Evidence), of: e, paid: map[rental.BookingID]time.Time{}}
	a.Report = verdict.New(
		lawPrice, lawDriven, lawOneUser, lawLocked, lawInTime, lawOrdered, lawAnswered,
		lawSettled, lawCharged, lawDeposits, lawRefunds, lawRecorded, lawAuditLog,
	)
	a.index()
	a.money()
	for _, b := range e.Rentals {
		a.price(b)
		if b.State == rental.Completed {
			a.locked(b)
		}
	}
	a.driven()
	a.oneUser()
	for _, t := range e.Transitions {
		a.Must(lawInTime, t.State != rental.TransitionOpen || t.NeedsStaff, "%v", t)
	}
	a.ordered()
	for _, rent := range e.Rents {
		a.answered(rent)
	}
	return a.Report
}

type rentalAudit struct {
	*audit
	of          RentalEvidence
	paid        map[rental.BookingID]time.Time // since when a charge of the start is made
	transitions map[rental.BookingID][]TransitionRow
	rentals     map[telematics.Unit][]RentalRow
	events      map[telematics.Unit][]simulator.Event // of commands that lock or unlock, or end
}

func (a *rentalAudit) index() {
	a.transitions, a.rentals = map[rental.BookingID][]TransitionRow{}, map[telematics.Unit][]RentalRow{}
	a.events = map[telematics.Unit][]simulator.Event{}
	for _, t := range a.of.Transitions {
		a.transitions[t.Booking] = append(a.transitions[t.Booking], t)
	}
	for _, b := range a.of.Rentals {
		a.rentals[b.Unit] = append(a.rentals[b.Unit], b)
	}
	for _, e := range a.of.Events {
		a.events[e.Unit] = append(a.events[e.Unit], e)
	}
	of := []string{rental.ChargeActivity(rental.StartCharge), rental.ChargeActivity(rental.DepositCharge)}
	for _, l := range a.Entries {
		made := slices.Contains(of, l.Action) && (l.State == rental.Paid || l.State == rental.Authorized)
		if since, known := a.paid[l.Booking]; made && (!known || l.At.Before(since)) {
			a.paid[l.Booking] = l.At
		}
	}
}

// closed returns when the booking has ended: its actual end is when its client requested that.
func (a *rentalAudit) closed(b RentalRow) time.Time {
	if b.State != rental.Completed {
		return a.of.ReadAt
	}
	if t := a.endOf(b); t != nil {
		return *t.Ended
	}
	return *b.End
}

// endOf returns the transition that ended the rental; nil: none did.
func (a *rentalAudit) endOf(b RentalRow) *TransitionRow {
	for _, t := range a.transitions[b.ID] {
		if t.Kind == rental.EndRental && t.State == rental.TransitionDone {
			return &t
		}
	}
	return nil
}

// price checks what was charged, less what was refunded, and that nothing is held for a rental that
// is not active. What a declined card still owes counts as charged.
func (a *rentalAudit) price(b RentalRow) {
	var net, held rental.Minor
	count := map[rental.ChargeKind]int{}
	for _, c := range a.charges[b.ID] {
		for _, m := range a.moneyMoved(c) {
			net, held = net+rental.Minor(m.Captured), held+rental.Minor(m.Held)
		}
		withdrawn := c.Goal == rental.Release || c.State == rental.Released
		switch {
		case c.Kind == rental.RefundCharge:
			net -= c.Amount // whether or not the bank returned it
		case c.Kind == rental.DepositCharge || withdrawn:
		case c.State != rental.Paid:
			net += c.Amount
		}
		if !withdrawn {
			count[c.Kind]++
		}
	}
	want := rental.Minor(0)
	if charged := count[rental.StartCharge] > 0; b.State == rental.Completed || b.State == rental.Active && charged {
		want = b.Rental
	}
	a.Must(lawPrice, net == want && count[rental.StartCharge] <= 1 && count[rental.EndCharge] <= 1 && count[rental.DepositCharge] <= 1,
		"%v: charged %d less refunds, want %d: %v", b, net, want, a.charges[b.ID])
	a.Must(lawPrice, held == 0 || b.State == rental.Active, "%v: %d are still held: %v", b, held, a.charges[b.ID])
	if b.State == rental.Completed {
		low, high := priceBounds(agencyOf(int(b.Vehicle-1)), b.End.Sub(*b.Start))
		a.Must(lawPrice, low <= b.Rental && b.Rental <= high, "%v: costs %d, want %d to %d", b, b.Rental, low, high)
	}
}

// priceBounds returns what a rental of some length costs with tax: if it was paused throughout, and
// if it never was.
func priceBounds(agency telematics.AgencyID, length time.Duration) (low, high rental.Minor) {
	plan, tax := rentalPlans[agency][""], rental.Minor(rentalTerms[agency].Tax)
	minutes := rental.Minor((length + time.Minute - 1) / time.Minute)
	withTax := func(m rental.Minor) rental.Minor { return m + m*tax/1_000_000 }
	return withTax(max(plan.Minimum, (minutes-1)*plan.PauseMinute)), withTax(max(plan.Minimum, (minutes+1)*plan.Minute)) + 1
}

// driven checks that whatever opens a vehicle, or releases its immobiliser, is of a rental that has
// begun, or whose start is in progress, and that is paid for, or has a hold.
func (a *rentalAudit) driven() {
	for _, e := range a.of.Events {
		if e.Kind != simulator.CommandStarted || !e.Action.Opens() && e.Action != telematics.EnableDriving {
			continue
		}
		a.Must(lawDriven, slices.ContainsFunc(a.rentals[e.Unit], func(b RentalRow) bool { return a.covers(b, e.True) }),
			"%s began %s (%s) at %s; its rentals: %v", e.Unit, e.Action, e.Command, clock(&e.True), a.rentals[e.Unit])
	}
}

func (a *rentalAudit) covers(b RentalRow, at time.Time) bool {
	if since, made := a.paid[b.ID]; !made || since.After(at) {
		return false
	}
	if b.Start != nil && !at.Before(*b.Start) && !at.After(a.closed(b)) {
		return true
	}
	return slices.ContainsFunc(a.transitions[b.ID], func(t TransitionRow) bool {
		return t.Kind == rental.StartRental && !at.Before(t.Requested) && (t.Ended == nil || !at.After(*t.Ended))
	})
}

// oneUser checks that the rentals of a vehicle follow each other.
func (a *rentalAudit) oneUser() {
	for _, all := range a.rentals {
		begun := slices.DeleteFunc(slices.Clone(all), func(b RentalRow) bool { return b.Start == nil })
		slices.SortFunc(begun, func(b, other RentalRow) int { return b.Start.Compare(*other.Start) })
		for i, b := range begun {
			a.Must(lawOneUser, i == 0 || !b.Start.Before(a.closed(begun[i-1])), "%v, and %v", begun[max(0, i-1)], b)
		}
	}
}

// locked checks, by the car's own log, that the last command before the end of a rental has locked
// and immobilised it, unless a person has ended it whatever the car says.
func (a *rentalAudit) locked(b RentalRow) {
	t := a.endOf(b)
	if t == nil || t.Override != "" {
		a.Must(lawLocked, t != nil, "%v: no transition has ended it", b)
		return
	}
	var last simulator.Event
	for _, e := range a.events[b.Unit] {
		acts := e.Kind == simulator.CommandStarted || e.Kind == simulator.CommandEnded
		if acts && !e.True.After(*t.Ended) && e.Action.Lane() == telematics.AccessLane {
			last = e
		}
	}
	done := last.Kind == simulator.CommandEnded && last.Status == telematics.Succeeded
	a.Must(
		lawLocked, done && last.Action == telematics.LockAndDisableDriving, "%v: the last command before was %s %s at %s: %s %s; %v", b,
		last.Kind, last.Action, clock(&last.True), last.Status, last.Detail, *t,
	)
}

// ordered checks that a command that changes who may drive is one of a transition, and was executed
// once. An attempt of a step has one command, by its key.
func (a *rentalAudit) ordered() {
	keys := map[telematics.CommandID]string{}
	for _, o := range a.of.Orders {
		before, twice := keys[o.Command]
		a.Must(lawOrdered, !twice, "%s is the command of %s and of %s", o.Command, before, o.Key)
		keys[o.Command] = o.Key
	}
	started := map[telematics.CommandID]int{}
	for _, e := range a.of.Events {
		if e.Kind != simulator.CommandStarted {
			continue
		}
		started[e.Command]++
		combined := e.Action == telematics.UnlockAndEnableDriving || e.Action == telematics.LockAndDisableDriving
		a.Must(lawOrdered, started[e.Command] == 1, "%s began %s (%s) again: %s", e.Unit, e.Action, e.Command, keys[e.Command])
		a.Must(
			lawOrdered, !combined || keys[e.Command] != "", "%s began %s (%s), of no transition", e.Unit, e.Action, e.Command,
		)
	}
}

// answered checks that what a client was answered as done is on record: one that is done, and
// requested before.
func (a *rentalAudit) answered(r Rent) {
	for _, t := range r.Answered {
		a.Must(lawAnswered, slices.ContainsFunc(a.transitions[r.Booking], func(row TransitionRow) bool {
			return row.Kind == t.Kind && row.State == rental.TransitionDone && row.Requested.Before(t.At)
		}), "the %s of booking %d was answered as done at %s; on record: %v", t.Kind, r.Booking, clock(&t.At), a.transitions[r.Booking])
	}
}
