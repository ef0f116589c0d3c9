package rentals

import (
	"slices"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// newPatientDrive is newDrive with runners that wait long for a vehicle.
func newPatientDrive(t *testing.T) *drive {
	t.Helper()
	patient := brief
	patient.StartUnknown, patient.PauseUnknown, patient.EndUnknown = time.Minute, time.Minute, time.Minute
	return newDriveThatWaits(t, sandbox.Behaviour{}, patient)
}

func (c *cars) sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orders
}

func (c *cars) lastSeen(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reported = at
}

// request requests a transition of the booking under a key; empty: none.
func (d *drive) request(
	by telematics.Actor, kind rental.TransitionKind, key, override string, admit func(rental.BookingDetails) error,
) (rental.Transition, bool, error) {
	r := asks(by, rental.TransitionActivity(kind), d.id, time.Now())
	if key != "" {
		r = named(r, key, string(kind)+override)
	}
	return d.run[0].Open(d.t.Context(), rental.TransitionRequest{Request: r, Kind: kind, Override: override, Admit: admit})
}

// giveUp gives a start up, as anna, under a key; empty: none.
func (d *drive) giveUp(id rental.TransitionID, key string) (replayed bool, err error) {
	r := asks(anna, rental.TransitionCancel, d.id, time.Now())
	if key != "" {
		r = named(r, key, id.String())
	}
	_, replayed, err = d.run[1].Cancel(d.t.Context(), r, id)
	return replayed, err
}

// entries returns the audit log entries of the booking with an action.
func (d *drive) entries(action string) []telematics.Activity {
	d.t.Helper()
	return slices.DeleteFunc(d.lines(d.id), func(l telematics.Activity) bool { return l.Action != action })
}

// unknownStart begins a start whose command has no result, under the key "start".
func (d *drive) unknownStart() rental.Transition {
	d.t.Helper()
	d.cars.script(unknownTo(telematics.UnlockAndEnableDriving))
	start, _, err := d.request(anna, rental.StartRental, "start", "", nil)
	require.NoError(d.t, err)
	d.awaitStep(rental.StepConfirm, 0)
	return start
}

func (d *drive) awaitStep(s rental.TransitionStep, attempt int) {
	d.t.Helper()
	storetest.Eventually(d.t, "it waits in "+string(s), func() bool {
		is := d.details().Transition
		return is.Step == s && is.Attempt >= attempt
	})
}

func TestTransitions_ARepeatedRequestWishesOnce(t *testing.T) {
	t.Parallel()
	d := newPatientDrive(t)
	start := d.unknownStart()
	for i, want := range []bool{false, true, true} {
		joined, replayed, err := d.request(anna, rental.StartRental, "again", "", nil)
		if err != nil || replayed != want || joined.ID != start.ID {
			t.Errorf("request %d: %s, replayed %v, %v; want %s, %v", i, joined.ID, replayed, err, start.ID, want)
		}
		d.awaitStep(rental.StepConfirm, 1)
	}
	if _, _, err := d.request(anna, rental.StartRental, "again", "another body", nil); codeOf(err) != telematics.IdempotencyMismatch {
		t.Errorf("another request with the key: %v", err)
	}
	if is := d.details().Transition; is.Attempt != 1 {
		t.Errorf("the command was ordered %d times, want 2", is.Attempt+1)
	}
	made := d.entries(rental.TransitionRepeat)
	if len(made) != 1 || made[0].Actor != anna || made[0].Agency != 1 || made[0].Vehicle != 1 || made[0].Outcome != telematics.Executed {
		t.Errorf("entries %+v, want one of anna", made)
	}
	d.cars.settle(telematics.Succeeded)
	d.await(start)
	for _, key := range []string{"start", "again"} { // after the end, too
		if ended, replayed, err := d.request(anna, rental.StartRental, key, "", nil); err != nil || !replayed || ended.ID != start.ID {
			t.Errorf("key %s: %s, replayed %v, %v; want %s", key, ended.ID, replayed, err, start.ID)
		}
	}
}

func TestTransitions_ARequestThatJoinsKeepsItsKey(t *testing.T) {
	t.Parallel()
	d := newPatientDrive(t)
	d.bank.FailAll("CreateIntent", sandbox.TooMany)
	start, _, err := d.request(anna, rental.StartRental, "first", "", nil)
	require.NoError(t, err)
	if joined, _, err := d.request(anna, rental.StartRental, "second", "", nil); err != nil || joined.ID != start.ID {
		t.Errorf("%s, %v; want %s", joined.ID, err, start.ID)
	}
	_, err = d.giveUp(start.ID, "")
	require.NoError(t, err)
	d.bank.FailWith(nil)
	d.await(start)
	if again, replayed, err := d.request(anna, rental.StartRental, "second", "", nil); err != nil || !replayed || again.ID != start.ID {
		t.Errorf("%s, replayed %v, %v; want the start that was given up, %s", again.ID, replayed, err, start.ID)
	}
}

func TestTransitions_AnOverrideHasItsEntry(t *testing.T) {
	t.Parallel()
	d := newPatientDrive(t)
	d.do(rental.StartRental)
	d.cars.script(unknownTo(telematics.LockAndDisableDriving))
	end, _, err := d.request(anna, rental.EndRental, "end", "", nil)
	require.NoError(t, err)
	storetest.Eventually(t, "a person is called", func() bool { return d.details().Transition.NeedsStaff })
	for i, want := range []bool{false, true} {
		joined, replayed, err := d.request(operator, rental.EndRental, "end", "towed to the yard", nil)
		if err != nil || replayed != want || joined.ID != end.ID {
			t.Errorf("override %d: %s, replayed %v, %v; want %s, %v", i, joined.ID, replayed, err, end.ID, want)
		}
	}
	is := d.await(end)
	if is.State != rental.TransitionDone || is.Override != "towed to the yard" || !d.shows(is, "failed") {
		t.Errorf("end %+v", is)
	}
	d.wants(rental.Completed, 3300, 0)
	made := d.entries(rental.TransitionOverride)
	if len(made) != 1 || made[0].Actor != operator || made[0].Note != "towed to the yard" || made[0].Agency != 1 || made[0].Vehicle != 1 {
		t.Errorf("entries %+v, want one of the operator, with the reason", made)
	}
	ended := d.entries("rental.end")
	if len(ended) != 1 || ended[0].Actor != anna || ended[0].Note != "" {
		t.Errorf("entries %+v, want one of anna, without the operator's words", ended)
	}

	d.id = d.bookNow()
	d.cars.script(nil)
	d.do(rental.StartRental)
	if end, _, err = d.request(operator, rental.EndRental, "", "stolen", nil); err != nil {
		t.Fatal(err)
	}
	if made := d.entries(rental.TransitionOverride); len(made) != 1 || made[0].Note != "stolen" {
		t.Errorf("entries %+v, want that of an end that begins with an override", made)
	}
	d.await(end)
}

func TestTransitions_AnOverrideNeedsSomethingToOverride(t *testing.T) {
	t.Parallel()
	d := newPatientDrive(t)
	refused := func(kind rental.TransitionKind) {
		t.Helper()
		if _, _, err := d.request(operator, kind, "", "towed", nil); codeOf(err) != rental.BookingStateConflict {
			t.Errorf("override of a %s: %v", kind, err)
		}
	}
	refused(rental.StartRental)
	start := d.unknownStart()
	refused(rental.StartRental)
	d.cars.settle(telematics.Succeeded)
	d.await(start)
	d.cars.script(nil)
	refused(rental.PauseRental)
	refused(rental.ResumeRental)
	n := d.count(`select count(*) from transitions where content ->> 'override' <> ''`)
	if n != 0 || len(d.entries(rental.TransitionOverride)) > 0 {
		t.Errorf("%d transitions have an override", n)
	}
}

func TestTransitions_AStartIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	d := newPatientDrive(t)
	start := d.unknownStart()
	for i, key := range []string{"cancel", "cancel", "", "another"} {
		if replayed, err := d.giveUp(start.ID, key); err != nil || replayed != (i == 1) {
			t.Errorf("cancel %d: replayed %v, %v", i, replayed, err)
		}
	}
	d.wantsFailed(d.await(start), rental.TransitionCancelled)
	d.cars.script(nil)
	d.do(rental.StartRental)
	// It is not the newest transition any more.
	for _, key := range []string{"cancel", ""} {
		if _, err := d.giveUp(start.ID, key); err != nil {
			t.Errorf("cancel of a start that was given up: %v", err)
		}
	}
	if made := d.entries(rental.TransitionCancel); len(made) != 1 || made[0].Actor != anna || made[0].Agency != 1 {
		t.Errorf("entries %+v, want one of anna", made)
	}
	if _, err := d.giveUp(d.details().Transition.ID, ""); codeOf(err) != rental.BookingStateConflict {
		t.Errorf("cancel of a start that is done: %v", err)
	}
	if _, err := d.giveUp(rental.TransitionID{1}, ""); codeOf(err) != rental.TransitionNotFound {
		t.Errorf("cancel of an unknown one: %v", err)
	}
}

func TestTransitions_ALimitIsAskedBeforeTheVehicle(t *testing.T) {
	t.Parallel()
	d := newPatientDrive(t)
	asked := 0
	admit := func(rental.BookingDetails) error { asked++; return rental.NotAvailable("over the limit") }
	refused := func(kind rental.TransitionKind, sent, limits int) {
		t.Helper()
		if _, _, err := d.request(anna, kind, "", "", admit); codeOf(err) != rental.VehicleNotAvailable {
			t.Errorf("%s over the limit: %v", kind, err)
		}
		if n := d.cars.sent(); n != sent || asked != limits {
			t.Errorf("%s: %d orders, the limit was asked %d times; want %d, %d", kind, n, asked, sent, limits)
		}
	}
	// Else a client whose rental is over could use up the vehicle's limit.
	if _, _, err := d.request(anna, rental.EndRental, "", "", admit); codeOf(err) != rental.BookingNotActive || asked != 0 {
		t.Errorf("end before the start: %v, the limit was asked %d times, want 0", err, asked)
	}
	refused(rental.StartRental, 0, 1)
	ben := telematics.Actor{Subject: "ben", Role: telematics.Client, Agency: 1}
	if _, _, err := d.request(ben, rental.StartRental, "", "", admit); codeOf(err) != rental.BookingNotFound || asked != 1 {
		t.Errorf("start of another client's booking: %v, the limit was asked %d times, want 1", err, asked)
	}
	d.do(rental.StartRental)
	d.cars.lastSeen(time.Now().Add(-time.Minute))
	refused(rental.EndRental, 1, 2)
	d.cars.script(unknownTo(telematics.Lock))
	_, _, err := d.request(anna, rental.PauseRental, "pause", "", nil)
	require.NoError(t, err)
	d.awaitStep(rental.StepConfirm, 0)
	refused(rental.PauseRental, 2, 3)
	if _, replayed, err := d.request(anna, rental.PauseRental, "pause", "", admit); err != nil || !replayed || asked != 3 {
		t.Errorf("repetition: replayed %v, %v, the limit was asked %d times, want 3", replayed, err, asked)
	}
}
