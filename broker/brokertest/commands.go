package brokertest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/telematics"
)

// CommandRecord is one record of commands, as two instances of Motorpool have it in
// hand.
type CommandRecord struct {
	Here, There broker.Commands
	Vehicle     func() telematics.VehicleID                      // adds a vehicle
	Lines       func(telematics.CommandID) []telematics.Activity // a command's lines of the history, oldest first
}

// CommandsContract runs what every record of commands promises. The record may be used
// by others, too.
func CommandsContract(t *testing.T, open func(*testing.T) CommandRecord) {
	for name, run := range map[string]func(*testing.T, CommandRecord){
		"AClaimedCommandIsWrittenDown":                claimedIsWritten,
		"ALaneHasOneOpenCommand":                      laneHasOneCommand,
		"LanesAndVehiclesAreIndependent":              lanesAreIndependent,
		"ASettledCommandFreesItsLane":                 settledFreesLane,
		"ACommandIsClaimedOnce":                       claimedOnce,
		"AClaimForAnUnknownVehicleIsRefused":          claimForUnknownVehicle,
		"OneOfManyClaimsWins":                         oneOfManyClaimsWins,
		"MarkingAsSentNotesTheFirstTime":              markSent,
		"MarkingAsSentUndoesNothing":                  markSentUndoesNothing,
		"OnlyWhatTheLifecycleAllowsIsApplied":         lifecycleIsKept,
		"ASettlementLeavesOneLine":                    settlementLeavesOneLine,
		"ReceivedLeavesNoLine":                        receivedLeavesNoLine,
		"ALateAnswerSettlesAnUnknownCommand":          lateAnswerSettles,
		"OnlyTheWordOfTheUnitThatWasAskedCounts":      onlyTheUnitsWord,
		"ASettlementOfAnUnknownCommandChangesNothing": settleUnknownCommand,
		"ASettlementTellsWhatTheSenderKnew":           settlementTellsOfSending,
		"OneOfManyAnswersSettles":                     oneOfManyAnswersSettles,
		"NewsIsWhatWasReceivedOrSettled":              newsOfCommands,
		"OverdueCommandsComeLongestOverdueFirst":      overdueCommands,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// instant is when the contract's commands were requested.
var instant = time.Date(2026, 1, 2, 10, 0, 0, 123456000, time.UTC)

// NewCommand returns an accepted command that can be claimed.
func NewCommand(vehicle telematics.VehicleID, action telematics.Action) telematics.Command {
	c := telematics.Command{
		ID: uuid.New(), Vehicle: vehicle, Agency: 1, Unit: telematics.Unit(fmt.Sprintf("unit-%d", vehicle)),
		Action: action, Lane: action.Lane(), Instance: "a",
		Actor:     telematics.Actor{Subject: "admin-7", Role: telematics.Admin, Agency: 1},
		RequestID: uuid.New(), State: telematics.Accepted, Requested: instant, Deadline: instant.Add(10 * time.Second),
	}
	if action == telematics.AttentionSignal {
		c.Attention = &telematics.Attention{Signal: telematics.Horn, Duration: 1500 * time.Millisecond}
	}
	return c
}

// claim claims a command and returns it as it must be written down.
func (r CommandRecord) claim(t *testing.T, c telematics.Command) telematics.Command {
	t.Helper()
	claim, err := r.Here.Claim(t.Context(), c)
	if err != nil || claim.Occupant != nil || claim.Seq == 0 {
		t.Fatalf("Claim = %+v, %v; want the lane", claim, err)
	}
	c.Seq = claim.Seq
	return c
}

func (r CommandRecord) claimLock(t *testing.T) telematics.Command {
	t.Helper()
	return r.claim(t, NewCommand(r.Vehicle(), telematics.Lock))
}

// settlement returns one that is due a second after the request.
func settlement(c telematics.Command, state telematics.State) telematics.Settlement {
	return telematics.Settlement{Command: c.ID, State: state, At: c.Requested.Add(time.Second)}
}

func (r CommandRecord) settle(t *testing.T, s telematics.Settlement) telematics.Command {
	t.Helper()
	c, ok, err := r.Here.Settle(t.Context(), s)
	if err != nil || !ok {
		t.Fatalf("Settle(%+v) = %v, %v", s, ok, err)
	}
	return c
}

// open returns an open command as the record has it, which is asked for what is overdue
// at the end of time.
func (r CommandRecord) open(t *testing.T, id telematics.CommandID) telematics.Command {
	t.Helper()
	overdue, err := r.There.Overdue(t.Context(), instant.AddDate(50, 0, 0), 1_000_000)
	if err != nil {
		t.Fatalf("Overdue: %v", err)
	}
	i := slices.IndexFunc(overdue, func(c telematics.Command) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("command %s is not open", id)
	}
	return overdue[i]
}

func wantCommand(t *testing.T, got, want telematics.Command) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("command\n got %+v\nwant %+v", got, want)
	}
}

func claimedIsWritten(t *testing.T, r CommandRecord) {
	for _, action := range append(slices.Clone(telematics.ControlActions), telematics.ReportState) {
		c := r.claim(t, NewCommand(r.Vehicle(), action))
		wantCommand(t, r.open(t, c.ID), c)
	}
	anonymous := NewCommand(r.Vehicle(), telematics.Lock)
	anonymous.Actor = telematics.Actor{Subject: "motorpool", Role: telematics.System}
	anonymous.RequestID = uuid.Nil
	anonymous = r.claim(t, anonymous)
	wantCommand(t, r.open(t, anonymous.ID), anonymous)
}

func laneHasOneCommand(t *testing.T, r CommandRecord) {
	first := r.claimLock(t)
	for _, action := range []telematics.Action{telematics.Lock, telematics.Unlock, telematics.EnableDriving} {
		claim, err := r.There.Claim(t.Context(), NewCommand(first.Vehicle, action))
		if err != nil || claim.Occupant == nil || claim.Seq != 0 {
			t.Fatalf("Claim(%s) = %+v, %v; want an occupant", action, claim, err)
		}
		wantCommand(t, *claim.Occupant, first)
	}
}

func lanesAreIndependent(t *testing.T, r CommandRecord) {
	for range 2 {
		vehicle := r.Vehicle()
		for _, action := range []telematics.Action{
			telematics.Lock, telematics.AttentionSignal, telematics.OpenTopCase, telematics.ReportState,
		} {
			r.claim(t, NewCommand(vehicle, action))
		}
	}
}

func settledFreesLane(t *testing.T, r CommandRecord) {
	vehicle := r.Vehicle()
	var last int64
	for _, state := range telematics.States {
		if state.IsOpen() {
			continue
		}
		c := r.claim(t, NewCommand(vehicle, telematics.Lock))
		if c.Seq <= last {
			t.Errorf("seq %d follows %d in one lane", c.Seq, last)
		}
		last = c.Seq
		r.settle(t, settlement(c, state))
	}
}

func claimedOnce(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	again := NewCommand(r.Vehicle(), telematics.Lock)
	again.ID = c.ID
	if claim, err := r.Here.Claim(t.Context(), again); err == nil {
		t.Errorf("Claim = %+v for an id that is taken", claim)
	}
}

func claimForUnknownVehicle(t *testing.T, r CommandRecord) {
	const nobodys = 1 << 40
	_, err := r.Here.Claim(t.Context(), NewCommand(nobodys, telematics.Lock))
	if want := telematics.NoSuchVehicle(nobodys); !reflect.DeepEqual(err, error(want)) {
		t.Errorf("Claim = %v, want %v", err, want)
	}
}

func oneOfManyClaimsWins(t *testing.T, r CommandRecord) {
	vehicle := r.Vehicle()
	var mu sync.Mutex
	var won []telematics.CommandID
	var occupants []telematics.CommandID
	var wg sync.WaitGroup
	for i := range 40 {
		commands := r.Here
		if i%2 == 1 {
			commands = r.There
		}
		wg.Go(func() {
			c := NewCommand(vehicle, telematics.Unlock)
			claim, err := commands.Claim(t.Context(), c)
			if err != nil {
				t.Errorf("Claim: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if claim.Occupant == nil {
				won = append(won, c.ID)
				return
			}
			occupants = append(occupants, claim.Occupant.ID)
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d claims won one lane", len(won))
	}
	for _, id := range occupants {
		if id != won[0] {
			t.Errorf("a loser was shown %s as the occupant, want %s", id, won[0])
		}
	}
}

func markSent(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	for attempt := range 3 {
		at := instant.Add(time.Duration(attempt+1) * time.Second)
		if err := r.Here.MarkSent(t.Context(), c.ID, at, attempt+1); err != nil {
			t.Fatalf("MarkSent: %v", err)
		}
	}
	// An older mark that was overtaken takes nothing back.
	if err := r.Here.MarkSent(t.Context(), c.ID, instant.Add(time.Minute), 2); err != nil {
		t.Fatalf("MarkSent: %v", err)
	}
	c.State, c.SentAt, c.Attempts = telematics.Sent, instant.Add(time.Second), 3
	wantCommand(t, r.open(t, c.ID), c)
	if err := r.Here.MarkSent(t.Context(), uuid.New(), instant, 1); err != nil {
		t.Errorf("MarkSent of an unknown command: %v", err)
	}
}

func markSentUndoesNothing(t *testing.T, r CommandRecord) {
	for _, state := range []telematics.State{telematics.Received, telematics.Succeeded, telematics.Unknown} {
		c := r.claimLock(t)
		r.settle(t, settlement(c, state))
		if err := r.Here.MarkSent(t.Context(), c.ID, instant.Add(time.Second), 1); err != nil {
			t.Fatalf("MarkSent: %v", err)
		}
		news, err := r.Here.News(t.Context(), []telematics.CommandID{c.ID})
		if err != nil || len(news) != 1 || news[0].State != state {
			t.Errorf("News = %+v, %v; want state %s", news, err, state)
		}
	}
}

// bring leads a new command into a state.
func (r CommandRecord) bring(t *testing.T, state telematics.State) telematics.Command {
	t.Helper()
	c := r.claimLock(t)
	switch state {
	case telematics.Accepted:
		return c
	case telematics.Sent:
		if err := r.Here.MarkSent(t.Context(), c.ID, instant.Add(time.Millisecond), 1); err != nil {
			t.Fatalf("MarkSent: %v", err)
		}
		return c
	}
	return r.settle(t, settlement(c, state))
}

func lifecycleIsKept(t *testing.T, r CommandRecord) {
	for _, state := range telematics.States {
		for _, next := range telematics.States {
			c := r.bring(t, state)
			before := len(r.Lines(c.ID))
			after, ok, err := r.There.Settle(t.Context(), settlement(c, next))
			if err != nil || ok != state.MayBecome(next) {
				t.Errorf("%s to %s: %v, %v; want %v", state, next, ok, err, state.MayBecome(next))
				continue
			}
			if !ok {
				wantCommand(t, after, telematics.Command{})
			} else if after.State != next {
				t.Errorf("%s to %s became %s", state, next, after.State)
			}
			added := len(r.Lines(c.ID)) - before
			if want := ok && !next.IsOpen(); (added == 1) != want || added > 1 {
				t.Errorf("%s to %s added %d lines", state, next, added)
			}
		}
	}
}

func settlementLeavesOneLine(t *testing.T, r CommandRecord) {
	refused := telematics.Settlement{State: telematics.Rejected, Reason: telematics.StateConflict, Detail: telematics.Moving}
	failed := telematics.Settlement{State: telematics.Failed, Detail: "lock"}
	done := telematics.Settlement{State: telematics.Succeeded, Reported: &telematics.Report{
		At: instant.Truncate(time.Millisecond), Values: map[telematics.Field]any{telematics.IsLocked: true, telematics.SpeedKmh: 0.0},
	}}
	for _, s := range []telematics.Settlement{refused, failed, done, {State: telematics.Expired}, {State: telematics.Unknown}} {
		c := r.claim(t, NewCommand(r.Vehicle(), telematics.AttentionSignal))
		s.Command, s.Unit, s.At = c.ID, c.Unit, instant.Add(1234567*time.Microsecond)
		got := r.settle(t, s)
		c.State, c.Reason, c.Detail, c.Completed, c.Reported = s.State, s.Reason, s.Detail, s.At, s.Reported
		got.Reported, c.Reported = values(got.Reported), values(c.Reported)
		wantCommand(t, got, c)
		wantLines(t, r, c.ID, c.Line())
	}
}

// values keeps of a report what was said in it: reading it again adds what follows.
func values(r *telematics.Report) *telematics.Report {
	if r == nil {
		return nil
	}
	said := telematics.Report{At: r.At, Values: map[telematics.Field]any{}}
	for field, value := range r.Values {
		if value != nil {
			said.Values[field] = value
		}
	}
	return &said
}

func wantLines(t *testing.T, r CommandRecord, id telematics.CommandID, want ...telematics.Activity) {
	t.Helper()
	got := slices.Clone(r.Lines(id))
	for i := range got {
		if got[i].ID == 0 || i > 0 && got[i].ID <= r.Lines(id)[i-1].ID {
			t.Errorf("line %d has the id %d", i, got[i].ID)
		}
		got[i].ID = 0
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("lines\n got %+v\nwant %+v", got, want)
	}
}

func receivedLeavesNoLine(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	got := r.settle(t, settlement(c, telematics.Received))
	c.State, c.ReceivedAt = telematics.Received, instant.Add(time.Second)
	wantCommand(t, got, c)
	if lines := r.Lines(c.ID); len(lines) > 0 {
		t.Errorf("lines %+v, want none", lines)
	}
}

func lateAnswerSettles(t *testing.T, r CommandRecord) {
	for _, first := range []telematics.State{telematics.Unknown, telematics.Expired} {
		lost := r.bring(t, first)
		if lost.Late {
			t.Errorf("%s is late", first)
		}
		answer := settlement(lost, telematics.Succeeded)
		answer.Unit, answer.At = lost.Unit, instant.Add(time.Minute)
		found := r.settle(t, answer)
		if !found.Late || found.State != telematics.Succeeded || !found.Completed.Equal(answer.At) {
			t.Errorf("after a late answer: %+v", found)
		}
		wantLines(t, r, lost.ID, lost.Line(), found.Line())
	}
}

func onlyTheUnitsWord(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	s := settlement(c, telematics.Succeeded)
	s.Unit = "another"
	if got, ok, err := r.Here.Settle(t.Context(), s); err != nil || ok {
		t.Errorf("Settle by another unit = %+v, %v, %v", got, ok, err)
	}
	s.Unit = c.Unit
	r.settle(t, s)
}

func settleUnknownCommand(t *testing.T, r CommandRecord) {
	c, ok, err := r.Here.Settle(t.Context(), telematics.Settlement{Command: uuid.New(), State: telematics.Succeeded, At: instant})
	if err != nil || ok {
		t.Errorf("Settle = %+v, %v, %v", c, ok, err)
	}
}

func settlementTellsOfSending(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	s := settlement(c, telematics.Received)
	s.SentAt, s.Attempts = instant.Add(10*time.Millisecond), 1
	r.settle(t, s)
	s = settlement(c, telematics.Unknown)
	s.SentAt, s.Attempts = instant.Add(20*time.Millisecond), 3
	got := r.settle(t, s)
	if !got.SentAt.Equal(instant.Add(10*time.Millisecond)) || got.Attempts != 3 {
		t.Errorf("sent at %v, %d attempts; want the first time and the most attempts", got.SentAt, got.Attempts)
	}
}

func oneOfManyAnswersSettles(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	states := []telematics.State{telematics.Succeeded, telematics.Rejected, telematics.Failed}
	var mu sync.Mutex
	var applied []telematics.Command
	var wg sync.WaitGroup
	for i := range 30 {
		commands := r.Here
		if i%2 == 1 {
			commands = r.There
		}
		wg.Go(func() {
			got, ok, err := commands.Settle(t.Context(), settlement(c, states[i%len(states)]))
			if err != nil {
				t.Errorf("Settle: %v", err)
			}
			if ok {
				mu.Lock()
				defer mu.Unlock()
				applied = append(applied, got)
			}
		})
	}
	wg.Wait()
	if len(applied) != 1 {
		t.Fatalf("%d answers settled one command", len(applied))
	}
	wantLines(t, r, c.ID, applied[0].Line())
}

func newsOfCommands(t *testing.T, r CommandRecord) {
	var ids []telematics.CommandID
	want := map[telematics.CommandID]telematics.State{}
	for _, state := range telematics.States {
		c := r.bring(t, state)
		ids = append(ids, c.ID)
		if state != telematics.Accepted && state != telematics.Sent {
			want[c.ID] = state
		}
	}
	r.bring(t, telematics.Succeeded) // nobody asks for this one
	news, err := r.There.News(t.Context(), append(ids, uuid.New()))
	if err != nil {
		t.Fatalf("News: %v", err)
	}
	got := map[telematics.CommandID]telematics.State{}
	for _, c := range news {
		got[c.ID] = c.State
	}
	if !reflect.DeepEqual(got, want) || len(news) != len(want) {
		t.Errorf("News = %v, want %v", got, want)
	}
	if news, err := r.Here.News(t.Context(), nil); err != nil || len(news) > 0 {
		t.Errorf("News of nothing = %v, %v", news, err)
	}
}

func overdueCommands(t *testing.T, r CommandRecord) {
	// An age of its own: others' commands are not overdue then.
	age := time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)
	var want []telematics.CommandID
	for _, seconds := range []int{3, 1, 2, 5, 4} {
		c := NewCommand(r.Vehicle(), telematics.Lock)
		c.Requested, c.Deadline = age, age.Add(time.Duration(seconds)*time.Second)
		c = r.claim(t, c)
		switch seconds {
		case 4:
			r.settle(t, settlement(c, telematics.Expired))
		case 1:
			r.settle(t, settlement(c, telematics.Received))
			fallthrough
		case 2, 3:
			want = append(want, c.ID)
		}
	}
	overdue := func(before time.Time, limit int) []telematics.CommandID {
		commands, err := r.There.Overdue(t.Context(), before, limit)
		if err != nil {
			t.Fatalf("Overdue: %v", err)
		}
		if !slices.IsSortedFunc(commands, func(a, b telematics.Command) int { return a.Deadline.Compare(b.Deadline) }) {
			t.Errorf("not by deadline: %+v", commands)
		}
		var ids []telematics.CommandID
		for _, c := range commands {
			ids = append(ids, c.ID)
		}
		return ids
	}
	slices.SortFunc(want, compareIDs)
	got := overdue(age.Add(5*time.Second), 100) // a deadline at that instant is not before it
	first := overdue(age.Add(5*time.Second), 1)
	if len(first) != 1 || len(got) == 0 || first[0] != got[0] {
		t.Errorf("the first of %v is %v", got, first)
	}
	slices.SortFunc(got, compareIDs)
	if !slices.Equal(got, want) {
		t.Errorf("Overdue = %v, want %v", got, want)
	}
}

func compareIDs(a, b telematics.CommandID) int { return cmp.Compare(a.String(), b.String()) }
