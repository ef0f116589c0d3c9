package brokertest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// newUnitCommand returns a command to a unit whose answers name no command.
func newUnitCommand(vehicle telematics.VehicleID, action telematics.Action) telematics.Command {
	c := NewCommand(vehicle, action)
	c.Lane, c.BestEffort.AnswerBy, c.Assurance = telematics.UnitLane, time.Now().UTC().Truncate(time.Second).Add(telematics.AnswerWithin),
		telematics.Promises{Confirmed: true}
	return c
}

// awaiting returns the command to a unit that awaits its answer, or NoCommand.
func (r CommandRecord) awaiting(t *testing.T, unit telematics.Unit) telematics.CommandID {
	t.Helper()
	c, found, err := r.There.AwaitingAnswer(t.Context(), unit)
	if err != nil || found == (c.ID == telematics.NoCommand) {
		t.Fatalf("AwaitingAnswer = %+v, %v, %v", c, found, err)
	}
	return c.ID
}

// wantOccupied claims a command, and fails unless another one occupies its lane.
func (r CommandRecord) wantOccupied(t *testing.T, c telematics.Command, by telematics.CommandID) {
	t.Helper()
	claim, err := r.There.Claim(t.Context(), &c)
	if err != nil || claim.Occupant == nil || claim.Occupant.ID != by {
		t.Errorf("Claim(%s) = %+v, %v; want %s as the occupant", c.Action, claim, err, by)
	}
}

func assuranceIsStored(t *testing.T, r CommandRecord) {
	for bits := range 1 << 8 {
		has := func(bit int) bool { return bits&(1<<bit) != 0 }
		c := NewCommand(r.Vehicle(), telematics.Lock)
		c.Assurance = telematics.Promises{Signed: has(0), Expiring: has(1), Deduplicated: has(2), Correlated: has(3), Confirmed: has(4)}
		c.BestEffort = telematics.BestEffort{ByReport: has(5), ReportedBefore: has(6), Contradicted: has(7)}
		c = r.claim(t, c)
		wantCommand(t, r.open(t, c.ID), c)
		if got := r.settle(t, settlement(c, telematics.Unknown)); got.Assurance != c.Assurance || got.BestEffort != c.BestEffort {
			t.Errorf("settled with %+v, %+v; want %+v, %+v", got.Assurance, got.BestEffort, c.Assurance, c.BestEffort)
		}
	}
}

func unitLaneHasOneCommand(t *testing.T, r CommandRecord) {
	vehicle := r.Vehicle()
	first := r.claim(t, newUnitCommand(vehicle, telematics.Lock))
	wantCommand(t, r.open(t, first.ID), first)
	for _, action := range []telematics.Action{
		telematics.Lock, telematics.AttentionSignal, telematics.OpenTopCase, telematics.ReportState,
	} {
		r.wantOccupied(t, newUnitCommand(vehicle, action), first.ID)
	}
	assert.Equal(t, r.awaiting(t, first.Unit), first.ID, "AwaitingAnswer")
	assert.Equal(t, r.awaiting(t, "another"), telematics.NoCommand, "AwaitingAnswer of another unit")
}

func unansweredKeepsUnitLane(t *testing.T, r CommandRecord) {
	for name, end := range map[string]struct {
		state           telematics.State
		byUnit, awaited bool
	}{
		"not answered":              {telematics.Unknown, false, true},
		"confirmed by a report":     {telematics.Succeeded, false, true},
		"never sent":                {telematics.Expired, false, false},
		"answered as succeeded":     {telematics.Succeeded, true, false},
		"answered as rejected":      {telematics.Rejected, true, false},
		"answered as failed":        {telematics.Failed, true, false},
		"answered, outcome unknown": {telematics.Unknown, true, false},
	} {
		for _, known := range []bool{false, true} {
			vehicle := r.Vehicle()
			c := r.claim(t, newUnitCommand(vehicle, telematics.Lock))
			s := settlement(c, end.state)
			if end.byUnit {
				s.Unit = c.Unit
			}
			if known {
				s.Known = &c
			}
			settled := r.settle(t, s)
			assert.Equal(t, awaitsAnswer(&settled, time.Now()), end.awaited, "%s: awaits an answer", name)
			next := newUnitCommand(vehicle, telematics.AttentionSignal)
			if !end.awaited {
				assert.Equal(t, r.awaiting(t, c.Unit), telematics.NoCommand, "%s: AwaitingAnswer", name)
				r.claim(t, next)
				continue
			}
			r.wantOccupied(t, next, c.ID)
			assert.Equal(t, r.awaiting(t, c.Unit), c.ID, "%s: AwaitingAnswer", name)
			// The late answer is stored.
			r.note(t, delivery.Progress{ReceivedAt: instant.Add(time.Minute)}, c.ID)
			assert.Equal(t, r.awaiting(t, c.Unit), telematics.NoCommand, "%s: after the answer, AwaitingAnswer", name)
			r.claim(t, next)
		}
	}
}

func unitLaneIsFreeAfterAnswerBy(t *testing.T, r CommandRecord) {
	// The latter is of a command that was claimed while the clocks were 74 years ahead.
	for _, answerBy := range []time.Time{time.Now().Add(-time.Second), time.Now().AddDate(74, 0, 0)} {
		vehicle := r.Vehicle()
		c := newUnitCommand(vehicle, telematics.Lock)
		c.BestEffort.AnswerBy = answerBy.UTC().Truncate(time.Second)
		c = r.claim(t, c)
		r.wantOccupied(t, newUnitCommand(vehicle, telematics.Lock), c.ID) // the command is open
		r.settle(t, settlement(c, telematics.Unknown))
		r.claim(t, newUnitCommand(vehicle, telematics.Lock))
	}
}

// unitLaneOfMovedUnit moves a unit to another vehicle while its answer is awaited.
func unitLaneOfMovedUnit(t *testing.T, r CommandRecord) {
	c := r.claim(t, newUnitCommand(r.Vehicle(), telematics.Lock))
	r.settle(t, settlement(c, telematics.Unknown))
	moved := newUnitCommand(r.Vehicle(), telematics.Lock)
	moved.Unit = c.Unit
	r.wantOccupied(t, moved, c.ID)
}

func oneOfManyUnitClaimsWins(t *testing.T, r CommandRecord) {
	vehicle := r.Vehicle()
	var won atomic.Int32
	race(20, r.Here, r.There, func(i int, commands broker.Commands) {
		c := newUnitCommand(vehicle, telematics.ControlActions[i%6])
		claim, err := commands.Claim(t.Context(), &c)
		switch {
		case err != nil || claim.Seq == 0 && claim.Occupant == nil:
			t.Errorf("Claim = %+v, %v", claim, err)
		case claim.Occupant == nil:
			won.Add(1)
			// It keeps its lane after its settlement, too, as its answer is awaited.
			if _, ok, err := commands.Settle(t.Context(), settlement(c, telematics.Unknown)); !ok || err != nil {
				t.Errorf("Settle = %t, %v", ok, err)
			}
		}
	})
	assert.Equal(t, won.Load(), 1, "claims won the lane of one unit")
}

func answeredBefore(t *testing.T, r CommandRecord) {
	vehicle, other := r.Vehicle(), r.Vehicle()
	check := func(c telematics.Command, limit int, want ...telematics.CommandID) {
		t.Helper()
		earlier, err := r.There.AnsweredBefore(t.Context(), c, limit)
		var ids []telematics.CommandID
		for _, e := range earlier {
			ids = append(ids, e.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("AnsweredBefore(%d) = %s, %v; want %s", limit, ids, err, want)
		}
	}
	var all []telematics.Command
	var want []telematics.CommandID
	for _, step := range []struct {
		state    telematics.State
		received time.Time
	}{
		{telematics.Succeeded, time.Time{}},
		{telematics.Rejected, time.Time{}},
		{telematics.Failed, time.Time{}},
		{telematics.Unknown, instant}, // received
		{telematics.Unknown, time.Time{}},
		{telematics.Expired, time.Time{}}, // never sent
		{telematics.Succeeded, time.Time{}},
	} {
		c := newUnitCommand(vehicle, telematics.Lock)
		c.BestEffort.AnswerBy = time.Now().UTC().Add(-time.Second).Truncate(time.Second)
		c = r.claim(t, c)
		check(c, 100, want...)
		s := settlement(c, step.state)
		s.Unit, s.ReceivedAt = c.Unit, step.received
		r.settle(t, s)
		if step.state.IsFinal() || !step.received.IsZero() {
			want = slices.Insert(want, 0, c.ID)
		}
		all = append(all, c)
	}
	check(all[3], 100, all[2].ID, all[1].ID, all[0].ID)
	check(all[3], 2, all[2].ID, all[1].ID)
	another := r.claim(t, newUnitCommand(other, telematics.Lock))
	check(another, 100)
	inLane := r.claimLock(t) // of a unit whose answers name it
	r.settle(t, settlement(inLane, telematics.Succeeded))
	inLane.Seq++
	check(inLane, 100)
}
