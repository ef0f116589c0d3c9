package rentals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/rental/transitions"
	"motorpool/simulator/sandbox"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// cars are vehicles in memory that execute each command once, by its idempotency key.
type cars struct {
	mu       sync.Mutex
	made     map[string]*telematics.Command
	actions  []telematics.Action // executed, in order
	snapshot telematics.Snapshot
	reported time.Time
	orders   int // that were sent, also of reports
	// answer decides what becomes of an order; nil: it is executed.
	answer func(delivery.Order) telematics.State
	// delay is called before an order that may not be published any more is checked; nil: not.
	delay    func()
	detail   string             // of each answer
	answered *telematics.Report // likewise
	state    *telematics.Report // that is reported when it is asked for; nil: nothing is
	refusal  *telematics.Error  // of what is not ordered yet
	lacks    telematics.Action  // that they do not support
	presence telematics.PresenceStatus
	// busy is how many further orders are refused, because another command is in progress.
	busy int
}

func newCars() *cars {
	c := &cars{made: map[string]*telematics.Command{}, snapshot: telematics.NewSnapshot(), presence: telematics.Online}
	c.report(map[telematics.Field]any{
		telematics.Ignition: "off", telematics.Gear: "P", telematics.DoorFrontLeft: "closed", telematics.DoorTrunk: "closed",
		telematics.IsLocked: true, telematics.MileageKm: 1000.0, telematics.Latitude: 48.12, telematics.Longitude: 11.6,
	})
	return c
}

func (c *cars) report(values map[telematics.Field]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reported = time.Now()
	for f, v := range values {
		c.snapshot[f] = telematics.Reading{Value: v, At: c.reported}
	}
}

func (c *cars) Twin(_ context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return telematics.Twin{
		Vehicle: telematics.Vehicle{ID: id, AgencyID: 1}, Snapshot: telematics.Join(c.snapshot, nil),
		Contact: telematics.Contact{Status: c.presence, LastSeen: c.reported, ChangedAt: c.reported},
	}, nil
}

func (c *cars) Send(ctx context.Context, o *delivery.Order) (delivery.Receipt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders++
	if o.Action == telematics.ReportState && c.state == nil {
		return delivery.Receipt{}, telematics.UnitOffline(telematics.Contact{}, time.Now())
	}
	if o.Action == telematics.ReportState {
		return delivery.Receipt{Command: &telematics.Command{Reported: c.state, Completed: time.Now()}}, nil
	}
	if c.busy > 0 {
		c.busy--
		return delivery.Receipt{}, telematics.InProgress(&telematics.Command{ID: uuid.New(), Action: telematics.Unlock}, time.Now())
	}
	command, again := c.made[o.Idempotency.Key]
	if !again {
		now := time.Now()
		command = &telematics.Command{
			ID: uuid.New(), Vehicle: o.Vehicle, Action: o.Action, State: telematics.Succeeded, Requested: now, SentAt: now, Completed: now,
			Detail: c.detail, Reported: c.answered,
		}
		if c.answer != nil {
			command.State = c.answer(*o)
		}
		if c.delay != nil {
			c.delay()
		}
		forbidden := o.Allowed(ctx)
		if forbidden != nil {
			command.State = telematics.Expired
		}
		if c.made[o.Idempotency.Key] = command; command.State == telematics.Succeeded {
			c.actions = append(c.actions, o.Action)
		}
		if forbidden != nil {
			return delivery.Receipt{Command: command}, notExecuted(forbidden)
		}
	}
	if err := command.Err(); err != nil {
		return delivery.Receipt{Command: command, Replayed: again}, err
	}
	return delivery.Receipt{Command: command, Replayed: again}, nil
}

// notExecuted is the error of a command that its order has not allowed.
func notExecuted(because error) error {
	var known *telematics.Error
	if !errors.As(because, &known) {
		return because
	}
	refusal := *known
	refusal.Outcome = telematics.NotExecuted
	return &refusal
}

func (c *cars) Command(_ context.Context, id telematics.CommandID) (telematics.Command, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.made {
		if made.ID == id {
			return *made, nil
		}
	}
	return telematics.Command{}, telematics.NoSuchCommand(id)
}

// settle gives each command without a result one, as a late answer does.
func (c *cars) settle(s telematics.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.made {
		if made.State == telematics.Unknown {
			made.State, made.Completed = s, time.Now()
			if s == telematics.Succeeded {
				c.actions = append(c.actions, made.Action)
			}
		}
	}
}

// settleOne is settle of one command.
func (c *cars) settleOne(id telematics.CommandID, s telematics.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.made {
		if made.ID == id {
			made.State, made.Completed = s, time.Now()
			c.actions = append(c.actions, made.Action)
		}
	}
}

func (c *cars) script(answer func(delivery.Order) telematics.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = answer
}

func (c *cars) Refusal(_ context.Context, _ *telematics.Twin, a telematics.Action) *telematics.Error {
	if a == c.lacks {
		return telematics.NotSupported(a)
	}
	return c.refusal
}

// refuse lets further orders fail, because another command is in progress.
func (c *cars) refuse(orders int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = orders
}

func (c *cars) done() []telematics.Action {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.actions)
}

// drive is a world with a bank, a car, and two instances that carry transitions on.
type drive struct {
	*rentalWorld
	bank *rentaltest.Bank
	cars *cars
	run  []*transitions.Runner
	id   rental.BookingID
}

type bothStores struct {
	Bookings
	Transitions
}

// brief are waits of a runner that gives up soon.
var brief = transitions.Waits{
	Pay: 20 * time.Millisecond, PayLong: 50 * time.Millisecond, PayAtLeast: 10 * time.Second,
	OpenWithin: time.Minute, Momentary: 40 * time.Millisecond,
	Confirm: 20 * time.Millisecond, StartUnknown: 400 * time.Millisecond,
	PauseUnknown: 300 * time.Millisecond, EndUnknown: 60 * time.Millisecond, OrderAgain: 40 * time.Millisecond,
	Refund: 20 * time.Millisecond, Staff: 150 * time.Millisecond, Broken: 50 * time.Millisecond,
}

func newRunner(s transitions.Store, c transitions.Cars, w transitions.Waits, nudge func()) *transitions.Runner {
	return transitions.New(transitions.Config{
		Store: s, Cars: c, Nudge: nudge, Every: 250 * time.Millisecond,
		Lease: 2 * time.Second, Budget: time.Second, Logger: slog.New(slog.DiscardHandler), Waits: w,
	})
}

// The end of a rental withdraws the price that was charged, and declined, since its deposit was
// captured; the charge of the final price is the last one.
func TestEnd_OfARentalWithoutAHoldChargesOnce(t *testing.T) {
	d := newDriveOnlyHeld(t)
	d.card(sandbox.Behaviour{Decline: "insufficient_funds"})
	d.captureScratch()
	for c := d.details().Charges; len(c) < 2 || c[1].State != rental.Declined; c = d.details().Charges {
		require.NoError(t, t.Context().Err())
		time.Sleep(20 * time.Millisecond)
	}
	d.do(rental.EndRental)
	if b := d.details(); b.State != rental.Completed || len(b.Charges) != 3 || b.Charges[2].Kind != rental.EndCharge {
		t.Errorf("%s, %+v; want one charge at the end", b.State, b.Charges)
	}
}

// The hold ends while the vehicle has not answered the end, which then fails.
func TestEnd_ThatFailsChargesWhatNoHoldSecuresAnyMore(t *testing.T) {
	d := newDriveOnlyHeld(t)
	d.cars.script(unknownTo(telematics.LockAndDisableDriving))
	end, err := d.ask(rental.EndRental, "")
	require.NoError(t, err)
	for d.details().Transition.Step != rental.StepConfirm {
		require.NoError(t, t.Context().Err())
		time.Sleep(20 * time.Millisecond)
	}
	d.captureScratch()
	d.wants(rental.Active, 100, 0)
	d.cars.settle(telematics.Rejected)
	assert.Equal(t, d.await(end).State, rental.TransitionFailed, "the end")
	d.wants(rental.Active, 100+13200, 0)
}

// newDriveOnlyHeld begins a rental by a tariff whose start only holds the deposit.
func newDriveOnlyHeld(t *testing.T) *drive {
	t.Helper()
	d := newDrive(t, sandbox.Behaviour{})
	d.exec(`insert into rental_rules (agency_id, rules) values (1, '{"charge_at_start":"nothing"}')
		on conflict (agency_id) do update set rules = excluded.rules`)
	d.exec(`update bookings set tariff = '{"minute": 100, "deposit": 20000}', subtotal = 12000, tax = 1200 where id = $1`, d.id)
	d.do(rental.StartRental)
	return d
}

// captureScratch ends the hold: what is captured from it is final.
func (d *drive) captureScratch() {
	d.t.Helper()
	now := time.Now()
	d.amend(rental.BookingCapture, d.id, now, func(b rental.BookingDetails) (rental.Change, error) {
		return b.CaptureDeposit(now, 100, "scratch")
	})
}

// newDrive makes a booking of anna that begins now. Its runners leave a test time to act while a
// result is unknown, however slow the machine is.
func newDrive(t *testing.T, behave sandbox.Behaviour) *drive {
	t.Helper()
	patient := brief
	patient.StartUnknown, patient.PauseUnknown = time.Minute, time.Minute
	return newDriveThatWaits(t, behave, patient)
}

func newDriveThatWaits(t *testing.T, behave sandbox.Behaviour, waits transitions.Waits) *drive {
	t.Helper()
	w := newRentalWorld(t)
	d := &drive{rentalWorld: w, bank: rentaltest.NewBank(t), cars: newCars()}
	w.exec(`update clients set default_payment_method_id = null; delete from payment_methods`)
	d.card(behave)
	for _, p := range []*fixture{w.here, w.there} {
		collector := charging.NewCollector(charging.Config{
			Ledger: p, Notices: p, Cards: p, Processor: d.bank, Every: 250 * time.Millisecond, Lease: 2 * time.Second,
			Logger: slog.New(slog.DiscardHandler), Settled: func(b rental.BookingID) {
				for _, r := range d.run {
					r.Settled(b)
				}
			},
		})
		d.run = append(d.run, newRunner(bothStores{Bookings{p.DB}, Transitions{p.DB}}, d.cars, waits, collector.Nudge))
		d.background(collector.Run)
	}
	for _, r := range d.run {
		d.background(r.Run)
	}
	d.id = d.bookNow()
	return d
}

// background runs a part until the test ends, or end is called.
func (d *drive) background(run func(context.Context) error) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = run(ctx) })
	end = func() { stop(); ended.Wait() }
	d.t.Cleanup(end)
	return end
}

// card gives anna a card, which becomes the default.
func (d *drive) card(behave sandbox.Behaviour) {
	d.t.Helper()
	var client rental.ClientID
	require.NoError(d.t, d.here.Pool.Get(&client, `select id from clients where subject = 'anna' and agency_id = 1`))
	customer := rentaltest.CustomerOf(client)
	card := d.bank.Issue(rentaltest.NewCard(), customer, behave)
	d.exec(`update clients set customer = $2 where id = $1`, client, customer)
	d.exec(`with m as (
			insert into payment_methods (client_id, token, brand, last_four, exp_month, exp_year, fingerprint, created_at)
			values ($1, $2, 'visa', '4242', 12, 2040, $2, now()) returning id
		) update clients set default_payment_method_id = (select id from m) where id = $1`, client, card.Token)
}

func (d *drive) bookNow() rental.BookingID { return d.bookAt(time.Now()) }

func (d *drive) bookAt(start time.Time) rental.BookingID {
	d.t.Helper()
	made, _, err := d.here.OpenBooking(d.t.Context(), rental.Draft{
		Agency: 1, Client: "anna", Vehicle: 1, Start: start, End: start.Add(2 * time.Hour), Pickup: 1, Dropoff: 2,
	}, asks(operator, rental.BookingCreate, 0, time.Now()))
	require.NoError(d.t, err)
	return made.ID
}

func (d *drive) ask(kind rental.TransitionKind, override string) (rental.Transition, error) {
	now := time.Now()
	by := anna
	if override != "" {
		by = operator
	}
	t, _, err := d.run[0].Open(d.t.Context(), rental.TransitionRequest{
		Request: asks(by, rental.TransitionActivity(kind), d.id, now), Kind: kind, Override: override,
	})
	return t, err
}

// do begins a transition, and waits until it has ended.
func (d *drive) do(kind rental.TransitionKind) rental.Transition {
	d.t.Helper()
	t, err := d.ask(kind, "")
	require.NoError(d.t, err, "%s", kind)
	return d.await(t)
}

func (d *drive) await(t rental.Transition) rental.Transition {
	d.t.Helper()
	ended, err := d.run[1].Await(d.t.Context(), t.ID, 20*time.Second)
	if err != nil || ended.State == rental.TransitionOpen {
		d.t.Fatalf("%s: %s at %s, %v; want an end", t.Kind, ended.State, ended.Step, err)
	}
	return ended
}

func (d *drive) details() rental.BookingDetails {
	d.t.Helper()
	b, err := d.here.BookingDetails(d.t.Context(), d.id)
	require.NoError(d.t, err)
	return b
}

// wants checks the state of the booking, and what was charged less what was refunded, and is held.
func (d *drive) wants(state rental.BookingState, kept, held rental.Minor) {
	d.t.Helper()
	var b rental.BookingDetails
	var p rental.Payment
	ok := func() bool {
		b = d.details()
		p = b.Payment()
		return b.State == state && p.Charged-p.Refunded == kept && p.Held == held
	}
	for range 200 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.t.Errorf("booking %s, kept %d, held %d; want %s, %d, %d\n%+v", b.State, p.Charged-p.Refunded, p.Held, state, kept, held, b.Charges)
}

// shows reports whether one of the steps and their states contains a text.
func (d *drive) shows(t rental.Transition, text string) bool {
	return slices.ContainsFunc(t.ShownSteps(), func(s rental.ShownStep) bool {
		return strings.Contains(fmt.Sprint(s.Step, " ", s.State), text)
	})
}

func (d *drive) wantsActions(want ...telematics.Action) {
	d.t.Helper()
	assert.EqualSlices(d.t, d.cars.done(), want, "executed")
}

func (d *drive) wantsFailed(t rental.Transition, code telematics.Code) {
	d.t.Helper()
	if t.State != rental.TransitionFailed || t.Failure == nil || t.Failure.Code != code {
		d.t.Errorf("%s is %s, %+v; want failed with %s", t.Kind, t.State, t.Failure, code)
	}
}

func TestTransitions_AWholeRental(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	start := d.do(rental.StartRental)
	d.wants(rental.Active, 3300, 20000)
	d.do(rental.PauseRental)
	if b := d.details(); b.PausedSince.IsZero() {
		t.Error("not paused")
	}
	if _, err := d.ask(rental.PauseRental, ""); codeOf(err) != rental.BookingStateConflict {
		t.Errorf("second pause: %v", err)
	}
	d.do(rental.ResumeRental)
	d.cars.report(map[telematics.Field]any{telematics.DoorFrontLeft: "open"})
	_, err := d.ask(rental.EndRental, "")
	if codeOf(err) != rental.ReturnNotPossible || !strings.Contains(err.Error(), "front left open") {
		t.Errorf("end with an open door: %v", err)
	}
	d.cars.report(map[telematics.Field]any{telematics.DoorFrontLeft: "closed", telematics.MileageKm: 1012.5})
	end := d.do(rental.EndRental)
	d.wants(rental.Completed, 3300, 0)
	d.wantsActions(telematics.UnlockAndEnableDriving, telematics.Lock, telematics.Unlock, telematics.LockAndDisableDriving)
	b := d.details()
	if b.PausedFor <= 0 || b.StartMetres != 1_000_000 || b.EndMetres != 1_012_500 || !b.ActualEnd.Equal(end.Requested) {
		t.Errorf("booking %+v", b.Booking)
	}
	var got []string
	for _, s := range start.ShownSteps() {
		got = append(got, fmt.Sprint(s.Step, " ", s.State))
	}
	assert.Equal(t, strings.Join(got, ", "), "check done, pay done, command done, book done", "steps")
	entries := map[string]telematics.Outcome{}
	for _, l := range d.lines(d.id) {
		entries[l.Action] = l.Outcome
	}
	for _, k := range rental.TransitionKinds {
		if entries[rental.TransitionActivity(k)] != telematics.Executed {
			t.Errorf("audit entries %v, want one of %s", entries, k)
		}
	}
}

// A pause is cheaper than to drive.
func TestTransitions_ADrivenVehicleIsNotPaused(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	d.cars.report(map[telematics.Field]any{telematics.Ignition: "on"})
	if _, err := d.ask(rental.PauseRental, ""); codeOf(err) != telematics.VehicleStateConflict {
		t.Errorf("pause: %v", err)
	}
	// It was switched off a moment ago.
	d.cars.mu.Lock()
	d.cars.state = &telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.Ignition: "off"}}
	d.cars.mu.Unlock()
	d.do(rental.PauseRental)
	d.wantsActions(telematics.UnlockAndEnableDriving, telematics.Lock)
}

// Where a paused vehicle was driven without reception, only its odometer says so.
func TestTransitions_APauseInWhichTheVehicleIsDrivenIsNone(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	d.do(rental.PauseRental)
	d.cars.report(map[telematics.Field]any{telematics.MileageKm: 1012.5})
	d.do(rental.ResumeRental)
	if b := d.details(); b.PausedFor != 0 || !b.PausedSince.IsZero() {
		t.Errorf("driven for 12.5 km, and paused for %v, since %v", b.PausedFor, b.PausedSince)
	}
	if last := d.lines(d.id); last[len(last)-1].Details["paused_s"] != 0.0 {
		t.Errorf("audit log entry %+v", last[len(last)-1])
	}
	d.do(rental.PauseRental)
	d.cars.report(map[telematics.Field]any{telematics.MileageKm: 1013.5}) // shunted
	d.do(rental.EndRental)
	if b := d.details(); b.PausedFor <= 0 {
		t.Errorf("paused for %v", b.PausedFor)
	}
}

func TestTransitions_ADeclinedCardStartsNothing(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{Decline: "insufficient_funds"})
	d.wantsFailed(d.do(rental.StartRental), rental.PaymentRequired)
	d.wants(rental.Upcoming, 0, 0)
	d.wantsActions()
	d.card(sandbox.Behaviour{})
	d.do(rental.StartRental)
	d.wants(rental.Active, 3300, 20000)
}

func TestTransitions_ACarThatRefusesCostsNothing(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	for _, s := range []telematics.State{telematics.Rejected, telematics.Expired} {
		d.cars.script(func(delivery.Order) telematics.State { return s })
		assert.Equal(t, d.do(rental.StartRental).State, rental.TransitionFailed, "start")
		d.wants(rental.Upcoming, 0, 0)
		d.wantsActions()
	}
	d.cars.script(nil)
	d.do(rental.StartRental)
	d.wants(rental.Active, 3300, 20000)
}

// unknownTo makes commands of an action have no result.
func unknownTo(a telematics.Action) func(delivery.Order) telematics.State {
	return func(o delivery.Order) telematics.State {
		if o.Action == a {
			return telematics.Unknown
		}
		return telematics.Succeeded
	}
}

func TestTransitions_AStartOfUnknownResult(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]struct {
		do      func(*drive, rental.Transition)
		state   rental.BookingState
		kept    rental.Minor
		held    rental.Minor
		actions []telematics.Action
	}{
		"answers late": {func(d *drive, _ rental.Transition) { d.cars.settle(telematics.Succeeded) },
			rental.Active, 3300, 20000, []telematics.Action{telematics.UnlockAndEnableDriving}},
		"refuses late": {func(d *drive, _ rental.Transition) { d.cars.settle(telematics.Rejected) },
			rental.Upcoming, 0, 0, []telematics.Action{telematics.LockAndDisableDriving}},
		"has opened": {func(d *drive, _ rental.Transition) {
			d.cars.report(map[telematics.Field]any{telematics.IsLocked: false})
		},
			rental.Active, 3300, 20000, nil},
		"is ordered again": {func(d *drive, _ rental.Transition) {
			d.cars.script(nil)
			if _, err := d.ask(rental.StartRental, ""); err != nil {
				d.t.Error(err)
			}
		}, rental.Active, 3300, 20000, []telematics.Action{telematics.UnlockAndEnableDriving}},
		"answers once it is given up": {func(d *drive, s rental.Transition) {
			d.exec(`
				update transitions set content = content || '{"wish": "cancel"}', due_at = 'infinity', lease = null, lease_until = null`)
			d.cars.settle(telematics.Succeeded)
			d.exec(`update transitions set due_at = now()`)
		}, rental.Upcoming, 0, 0, []telematics.Action{telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving}},
		"is given up": {func(d *drive, s rental.Transition) {
			if _, err := d.giveUp(s.ID, ""); err != nil {
				d.t.Error(err)
			}
		}, rental.Upcoming, 0, 0, []telematics.Action{telematics.LockAndDisableDriving}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrive(t, sandbox.Behaviour{})
			start := d.unknownStart()
			then.do(d, start)
			d.await(start)
			d.wants(then.state, then.kept, then.held)
			d.wantsActions(then.actions...)
		})
	}
}

// Whose vehicle has opened without an answer, and who drives where it has no reception, rents it,
// from then on, also if its ignition is off when it reports again.
func TestTransitions_AStartThatIsDrivenHasBegun(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	start := d.unknownStart()
	since := d.details().Transition.UnknownSince
	d.cars.report(map[telematics.Field]any{telematics.MileageKm: 1030.0})
	_, err := d.giveUp(start.ID, "")
	require.NoError(t, err)
	d.await(start)
	d.wants(rental.Active, 3300, 20000)
	if b := d.details(); b.ActualStart.Sub(since).Abs() > time.Millisecond || b.StartMetres != 1_000_000 {
		t.Errorf("begun at %v with %d m, want %v", b.ActualStart, b.StartMetres, since)
	}
	d.wantsActions()
}

// A vehicle that answers that it failed may have opened all the same: its rental begins with that,
// not when it reports after the trip, whatever happens to the database then.
func TestTransitions_AFailedStartThatIsDrivenBeginsWithTheAnswer(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.cars.script(func(o delivery.Order) telematics.State {
		if o.Action == telematics.UnlockAndEnableDriving {
			return telematics.Failed
		}
		return telematics.Expired
	})
	start, err := d.ask(rental.StartRental, "")
	require.NoError(t, err)
	storetest.Eventually(t, "the vehicle is to be locked", func() bool { return d.details().Transition.Step == rental.StepUndo })
	since := d.details().Transition.Since
	time.Sleep(100 * time.Millisecond)
	d.cars.report(map[telematics.Field]any{telematics.MileageKm: 1030.0})
	d.await(start)
	d.wants(rental.Active, 3300, 20000)
	if b := d.details(); b.ActualStart.Sub(since).Abs() > time.Millisecond {
		t.Errorf("begun at %v, want %v", b.ActualStart, since)
	}
}

func TestTransitions_AStartWhoseResultStaysUnknownIsUndone(t *testing.T) {
	t.Parallel()
	d := newDriveThatWaits(t, sandbox.Behaviour{}, brief)
	d.cars.script(unknownTo(telematics.UnlockAndEnableDriving))
	begun, err := d.ask(rental.StartRental, "")
	require.NoError(t, err)
	d.cars.report(map[telematics.Field]any{telematics.Ignition: "off"}) // it is not driven
	failed := d.await(begun)
	d.wantsFailed(failed, telematics.CommandTimeout)
	if failed.Failure.Outcome != telematics.NotExecuted {
		t.Errorf("the start that was undone says %+v", failed.Failure)
	}
	d.wants(rental.Upcoming, 0, 0)
	d.wantsActions(telematics.LockAndDisableDriving)
}

// A vehicle that fails may have done one half. It is locked first, unless its answer says that
// there is nothing to lock: the money does not wait for a vehicle that cannot.
func TestTransitions_AStartThatTheVehicleFailedIsUndoneUnlessItDidNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		detail string
		report *telematics.Report
		undone bool
	}{
		"neither half":        {"lock_fault", lockedReport(true), false},
		"one half":            {"enable-driving", lockedReport(true), true},
		"it is unlocked":      {"lock_fault", lockedReport(false), true},
		"nothing is said":     {"", lockedReport(true), true},
		"nothing is reported": {"Lock fault", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrive(t, sandbox.Behaviour{})
			d.cars.script(func(o delivery.Order) telematics.State {
				if o.Action == telematics.UnlockAndEnableDriving {
					return telematics.Failed
				}
				return telematics.Succeeded
			})
			d.cars.detail, d.cars.answered = c.detail, c.report
			d.wantsFailed(d.do(rental.StartRental), telematics.CommandFailed)
			d.wants(rental.Upcoming, 0, 0)
			var want []telematics.Action
			if c.undone {
				want = append(want, telematics.LockAndDisableDriving)
			}
			d.wantsActions(want...)
		})
	}
}

func lockedReport(is bool) *telematics.Report {
	return &telematics.Report{Values: map[telematics.Field]any{telematics.IsLocked: is}}
}

func TestTransitions_AnEndGoesOnUntilTheCarHasDoneIt(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	lost := 0
	d.cars.script(func(delivery.Order) telematics.State {
		lost++
		if lost < 5 {
			return []telematics.State{telematics.Unknown, telematics.Expired}[lost%2]
		}
		return telematics.Succeeded
	})
	d.do(rental.EndRental)
	d.wants(rental.Completed, 3300, 0)
	d.wantsActions(telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving)
}

// No process ran while the client waited: nothing opens for one who may have left.
func TestTransitions_AStartThatComesTooLateOpensNothing(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.bank.FailAll("CreateIntent", sandbox.TooMany)
	start, err := d.ask(rental.StartRental, "")
	require.NoError(t, err)
	d.exec(`update transitions set content = content || jsonb_build_object('since', now() - interval '2 minutes'),
		step = 'command', due_at = now(), lease = null, lease_until = null`)
	d.bank.FailWith(nil)
	d.wantsFailed(d.await(start), telematics.TelematicsUnavailable)
	d.wants(rental.Upcoming, 0, 0)
	d.wantsActions()

	// It was paid meanwhile.
	d.bank.FailAll("CreateIntent", sandbox.TooMany)
	if start, err = d.ask(rental.StartRental, ""); err != nil {
		t.Fatal(err)
	}
	const yesterday = `jsonb_build_object('since', now() - interval '1 day', 'looked', now() - interval '1 day')`
	d.exec(`update transitions set content = content || ` + yesterday + `, due_at = 'infinity', lease = null, lease_until = null
		where state = 'open'`)
	d.bank.FailWith(nil)
	storetest.Eventually(t, "it is paid", func() bool { return d.details().StartPayment() == rental.PaymentMade })
	d.exec(`update transitions set due_at = now() where state = 'open'`)
	d.wantsFailed(d.await(start), rental.PaymentAwaited)
	d.wants(rental.Upcoming, 0, 0)
	d.wantsActions()
}

// A vehicle that was withdrawn since is not opened by a client who tries once more.
func TestTransitions_AWithdrawnVehicleIsNotOpenedAgain(t *testing.T) {
	t.Parallel()
	d := newPatientDrive(t)
	start := d.unknownStart()
	d.exec(`update vehicles set status = 'maintenance' where id = 1`)
	if _, err := d.ask(rental.StartRental, ""); codeOf(err) != rental.VehicleNotAvailable {
		t.Errorf("a second request: %v", err)
	}
	d.cars.script(nil)
	d.exec(`update transitions set content = content || '{"wish": "again"}', due_at = now(), lease = null, lease_until = null`)
	d.wantsFailed(d.await(start), rental.VehicleNotAvailable)
	d.wants(rental.Upcoming, 0, 0)
	d.wantsActions(telematics.LockAndDisableDriving)
}

// A vehicle that refuses to be locked ends the end, also after an attempt of unknown result: its
// rental goes on.
func TestTransitions_AnEndThatTheVehicleRefusesHasFailed(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	var ordered int
	d.cars.script(func(delivery.Order) telematics.State {
		if ordered++; ordered == 1 {
			return telematics.Unknown
		}
		return telematics.Rejected
	})
	d.wantsFailed(d.do(rental.EndRental), telematics.CommandRejected)
	d.wants(rental.Active, 3300, 20000)
}

// A vehicle that was unlocked before does not say by that that the start was executed.
func TestTransitions_AnUnlockedVehicleIsNoResult(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.cars.report(map[telematics.Field]any{telematics.IsLocked: false})
	start := d.unknownStart()
	d.cars.report(map[telematics.Field]any{telematics.IsLocked: false})
	reported := time.Now()
	storetest.Eventually(t, "a worker has seen the report", func() bool {
		is := d.details().Transition
		return is.Step == rental.StepConfirm && is.Looked.After(reported)
	})
	d.cars.settle(telematics.Rejected)
	d.wantsFailed(d.await(start), telematics.CommandRejected)
}

// A late answer that the command came too late is no end: it is ordered again.
func TestTransitions_AnEndThatExpiresLateIsOrderedAgain(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	d.cars.script(unknownTo(telematics.LockAndDisableDriving))
	end, err := d.ask(rental.EndRental, "")
	require.NoError(t, err)
	storetest.Eventually(t, "the result is unknown", func() bool { return d.details().Transition.Step == rental.StepConfirm })
	d.cars.script(nil)
	d.cars.settle(telematics.Expired)
	d.await(end)
	d.wants(rental.Completed, 3300, 0)
}

// Who requests an end where the vehicle cannot be reached, and drives on, pays until it is locked.
func TestTransitions_AnEndDoesNotStopTheTimeOfWhoDrivesOn(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	d.do(rental.PauseRental)
	since := d.details().PausedSince
	d.cars.script(unknownTo(telematics.LockAndDisableDriving))
	end, err := d.ask(rental.EndRental, "")
	require.NoError(t, err)
	storetest.Eventually(t, "the result is unknown", func() bool { return d.details().Transition.Step == rental.StepConfirm })
	d.cars.report(map[telematics.Field]any{telematics.MileageKm: 1030.0})
	d.cars.script(nil)
	d.cars.settle(telematics.Succeeded)
	end = d.await(end)
	if b := d.details(); !b.ActualEnd.After(end.Requested) || b.EndMetres != 1_030_000 {
		t.Errorf("requested at %v, ended at %v with %d m; want when it was locked, with 1030 km", end.Requested, b.ActualEnd, b.EndMetres)
	} else if paused := end.Requested.Sub(since); b.PausedFor != paused.Truncate(time.Millisecond) {
		t.Errorf("paused for %v, want the %v until the request", b.PausedFor, paused)
	}
}

// An attempt that was not executed says nothing about the one before.
func TestTransitions_AnEarlierAttemptIsExecutedLate(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]telematics.State{
		"the next one expires": telematics.Expired, "the next one is unknown, too": telematics.Unknown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrive(t, sandbox.Behaviour{})
			start := d.unknownStart()
			first := d.details().Transition.Command
			d.cars.script(func(o delivery.Order) telematics.State {
				if o.Action == telematics.UnlockAndEnableDriving {
					return second
				}
				return telematics.Succeeded
			})
			_, err := d.ask(rental.StartRental, "")
			require.NoError(t, err)
			storetest.Eventually(t, "it was ordered again", func() bool {
				is := d.details().Transition
				return is.Attempt == 1 && is.Step == rental.StepConfirm
			})
			d.cars.settleOne(first, telematics.Succeeded)
			if ended := d.await(start); ended.State != rental.TransitionDone {
				t.Errorf("the start is %s: %+v", ended.State, ended.Failure)
			}
			d.wants(rental.Active, 3300, 20000)
			d.wantsActions(telematics.UnlockAndEnableDriving)
		})
	}
}

// What the booking does not allow any more is not begun, also just before the command leaves.
func TestTransitions_AVehicleThatIsNotFreeAnyMoreDoesNotOpen(t *testing.T) {
	t.Parallel()
	unconfirmed := sandbox.Behaviour{Authenticate: true} // its payment is never made
	for name, c := range map[string]struct {
		card   sandbox.Behaviour
		change func(*drive)
		code   telematics.Code
	}{
		"withdrawn": {unconfirmed, func(d *drive) {
			d.exec(`update vehicles set status = 'maintenance' where id = 1`)
		}, rental.VehicleNotAvailable},
		"withdrawn before its command leaves": {sandbox.Behaviour{}, func(d *drive) {
			d.cars.delay = func() { d.exec(`update vehicles set status = 'maintenance' where id = 1`) }
		}, rental.VehicleNotAvailable},
		"another booking's start": {unconfirmed, func(d *drive) {
			later := d.bookAt(time.Now().Add(240 * time.Hour))
			d.exec(`
				insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content)
				values (gen_random_uuid(), $1, 'start', 'open', 'confirm', now(), '{}', '{}')`, later)
		}, rental.VehicleNotAvailable},
		"its time is over": {unconfirmed, func(d *drive) {
			d.exec(`update bookings set start_at = now() - interval '2 hours', end_at = now() where id = $1`, d.id)
		}, rental.BookingStateConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrive(t, c.card)
			d.bank.FailAll("CreateIntent", sandbox.TooMany)
			start, err := d.ask(rental.StartRental, "")
			require.NoError(t, err)
			c.change(d)
			d.bank.FailWith(nil)
			d.wantsFailed(d.await(start), c.code)
			d.wants(rental.Upcoming, 0, 0)
			d.wantsActions()
		})
	}
}

// A booking that cannot become active any more is not retried for ever: the vehicle is locked.
func TestTransitions_AStartWhoseBookingIsGoneIsUndone(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	start := d.unknownStart()
	d.exec(`update bookings set state = 'cancelled' where id = $1`, d.id)
	d.cars.settle(telematics.Succeeded)
	d.wantsFailed(d.await(start), rental.BookingStateConflict)
	d.wants(rental.Cancelled, 0, 0)
	d.wantsActions(telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving)
}

// A process that stands still before it opens a vehicle, for longer than its lease, does not open
// it: another has taken the transition, and may have ended it.
func TestTransitions_AnOrderWhoseLeaseIsLostIsNotPublished(t *testing.T) {
	t.Parallel()
	waits := brief
	waits.Momentary = 0 // the other worker does not order it again
	d := newDriveThatWaits(t, sandbox.Behaviour{}, waits)
	var once sync.Once
	d.cars.delay = func() {
		once.Do(func() { d.exec(`update transitions set lease = gen_random_uuid(), lease_until = now()`) })
	}
	d.do(rental.StartRental)
	d.wants(rental.Upcoming, 0, 0)
	d.wantsActions()
}

// The vehicle that was checked is the one that opens: its client stands there.
func TestTransitions_ABookingThatMovesMeanwhileOpensNoVehicle(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	_, _, err := d.request(anna, rental.StartRental, "", "", func(rental.BookingDetails) error {
		_, err := d.move(d.id, 2, time.Now())
		return err
	})
	if codeOf(err) != rental.BookingStateConflict {
		t.Errorf("start: %v, want %s", err, rental.BookingStateConflict)
	}
	d.wants(rental.Upcoming, 0, 0)
	assert.Equal(t, len(d.details().Charges), 0, "charges")
	d.wantsActions()
}

func TestTransitions_StartThatWouldBeRefusedChargesNothing(t *testing.T) {
	t.Parallel()
	d := newDriveThatWaits(t, sandbox.Behaviour{}, brief)
	d.cars.refusal = telematics.Halted(telematics.Halt{Why: "a drill"})
	if _, err := d.ask(rental.StartRental, ""); codeOf(err) != telematics.CommandsHalted {
		t.Errorf("start: %v, want %s", err, telematics.CommandsHalted)
	}
	d.cars.refusal = nil
	reported := d.cars.reported
	d.cars.presence, d.cars.reported = telematics.Offline, reported.Add(-2*time.Minute)
	if _, err := d.ask(rental.StartRental, ""); codeOf(err) != telematics.VehicleOffline {
		t.Errorf("start of a vehicle that cannot be reached: %v, want %s", err, telematics.VehicleOffline)
	}
	d.cars.presence, d.cars.reported = telematics.Online, reported
	for _, d.cars.lacks = range []telematics.Action{telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving} {
		if _, err := d.ask(rental.StartRental, ""); codeOf(err) != telematics.CommandNotSupported {
			t.Errorf("start without %s: %v, want %s", d.cars.lacks, err, telematics.CommandNotSupported)
		}
	}
	d.wants(rental.Upcoming, 0, 0)
	assert.Equal(t, len(d.details().Charges), 0, "charges")
}

// What the client has ordered just before may open the vehicle after the rental has ended.
func TestTransitions_StaffEndAfterACommandThatIsInProgress(t *testing.T) {
	t.Parallel()
	d := newDriveThatWaits(t, sandbox.Behaviour{}, brief)
	d.do(rental.StartRental)
	d.cars.refuse(2)
	end, err := d.ask(rental.EndRental, "parked at the station")
	require.NoError(t, err)
	if ended := d.await(end); ended.State != rental.TransitionDone {
		t.Errorf("end %+v", ended)
	}
	d.wantsActions(telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving)
}

func TestTransitions_StaffEndWhatCannotBeReached(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	d.cars.script(func(delivery.Order) telematics.State { return telematics.Expired })
	end, err := d.ask(rental.EndRental, "")
	require.NoError(t, err)
	storetest.Eventually(t, "it was ordered again", func() bool { return d.details().Transition.Attempt > 1 })
	_, err = d.ask(rental.EndRental, "burnt out")
	require.NoError(t, err)
	if ended := d.await(end); ended.State != rental.TransitionDone {
		t.Errorf("end %+v", ended)
	}
	d.wants(rental.Completed, 3300, 0)
}

func TestTransitions_StaffGiveUpLockingAVehicleThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	d := newDriveThatWaits(t, sandbox.Behaviour{}, brief)
	d.cars.script(func(delivery.Order) telematics.State { return telematics.Unknown })
	start, err := d.ask(rental.StartRental, "")
	require.NoError(t, err)
	storetest.Eventually(t, "it is being undone", func() bool {
		is := d.details().Transition
		return is.Step == rental.StepUndo && is.NeedsStaff
	})
	_, err = d.ask(rental.StartRental, "a colleague has locked it")
	require.NoError(t, err)
	ended := d.await(start)
	d.wantsFailed(ended, telematics.CommandTimeout)
	d.wants(rental.Upcoming, 0, 0)
	if !d.shows(ended, "undo failed") {
		t.Errorf("steps %v; want it shown that the vehicle was not locked", ended.ShownSteps())
	}
}

func TestTransitions_ConcurrentRequestsAreOne(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.bank.FailAll("CreateIntent", sandbox.TooMany) // it is open until each request was answered
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			q := asks(anna, "rental.start", d.id, time.Now()) // a tap, and another
			if i%4 < 2 {
				q = named(q, "k", "start") // repeated
			}
			if _, _, err := d.run[i%2].Open(t.Context(), rental.TransitionRequest{Request: q, Kind: rental.StartRental}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	d.bank.FailWith(nil)
	d.await(*d.details().Transition)
	d.wants(rental.Active, 3300, 20000)
	d.wantsActions(telematics.UnlockAndEnableDriving)
	assert.Equal(t, d.count(`select count(*) from transitions`), 1, "transitions")
}

func TestTransitions_AnExtensionThatIsNotPaidBeforeTheEndCostsNothing(t *testing.T) {
	t.Parallel()
	d := newDrive(t, sandbox.Behaviour{})
	d.do(rental.StartRental)
	d.wants(rental.Active, 3300, 20000)
	d.exec(`update bookings set tariff = '{"minute": 100}' where id = $1`, d.id)
	d.bank.FailAll("CreateIntent", sandbox.TooMany)
	now := time.Now()
	d.amend(rental.BookingExtend, d.id, now, func(b rental.BookingDetails) (rental.Change, error) {
		return b.Extend(now, b.End.Add(time.Hour), telematics.Client)
	})
	end, err := d.ask(rental.EndRental, "")
	require.NoError(t, err)
	storetest.Eventually(t, "the car is locked", func() bool { return len(d.cars.done()) == 2 })
	d.bank.FailWith(nil)
	d.await(end)
	d.wants(rental.Completed, 110, 0)
}
