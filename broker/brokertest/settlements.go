package brokertest

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

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
		news, err := r.Here.News(t.Context(), []telematics.CommandID{c.ID}, nil)
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

func knownCommandIsReturnedAsItIsRead(t *testing.T, r CommandRecord) {
	report := &telematics.Report{At: instant.Truncate(time.Millisecond), Values: map[telematics.Field]any{telematics.IsLocked: true}}
	for _, state := range telematics.States {
		for _, next := range telematics.States {
			for _, reported := range []*telematics.Report{nil, report} {
				c := r.bring(t, state)
				s := settlement(c, next)
				s.Known, s.Reported, s.SentAt, s.Attempts = &c, reported, instant, 2
				got, ok, err := r.Here.Settle(t.Context(), s)
				if err != nil || ok != state.MayBecome(next) {
					t.Errorf("%s to %s: %v, %v; want %v", state, next, ok, err, state.MayBecome(next))
					continue
				}
				if !ok || next == telematics.Sent {
					continue
				}
				read, err := r.There.News(t.Context(), []telematics.CommandID{c.ID}, nil)
				if err != nil || len(read) != 1 {
					t.Fatalf("News: %v, %v", read, err)
				}
				got.Reported, read[0].Reported = values(got.Reported), values(read[0].Reported)
				wantCommand(t, got, read[0])
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
	for i, s := range []telematics.Settlement{refused, failed, done, {State: telematics.Expired}, {State: telematics.Unknown}} {
		ordered := NewCommand(r.Vehicle(), telematics.AttentionSignal)
		ordered.Booking = int64(i) // of the first one none
		c := r.claim(t, ordered)
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
