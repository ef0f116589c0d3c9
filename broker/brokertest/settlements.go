package brokertest

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// note stores the same progress of some commands.
func (r CommandRecord) note(t *testing.T, p delivery.Progress, ids ...telematics.CommandID) {
	t.Helper()
	notes := make([]delivery.Note, len(ids))
	for i, id := range ids {
		notes[i] = delivery.Note{Command: id, Progress: p}
	}
	require.NoError(t, r.Here.StoreProgress(t.Context(), notes), "StoreProgress")
}

func progressIsStored(t *testing.T, r CommandRecord) {
	sent, received, both := r.claimLock(t), r.claimLock(t), r.claimLock(t)
	at := func(seconds int) time.Time { return instant.Add(time.Duration(seconds) * time.Second) }
	for attempt := range 3 {
		r.note(t, delivery.Progress{SentAt: at(attempt + 1), Attempts: attempt + 1}, sent.ID, both.ID)
	}
	// Older progress that arrives later.
	r.note(t, delivery.Progress{SentAt: at(60), Attempts: 2}, sent.ID)
	// The MQTT client returned an error, but the unit has the message.
	r.note(t, delivery.Progress{ReceivedAt: at(4)}, received.ID)
	r.note(t, delivery.Progress{SentAt: at(1), Attempts: 3, ReceivedAt: at(5)}, both.ID, uuid.New(), both.ID)
	r.note(t, delivery.Progress{SentAt: at(1), Attempts: 4, ReceivedAt: at(6), Retransmitted: []time.Time{at(2), at(4), at(8)}}, both.ID)
	r.note(t, delivery.Progress{SentAt: at(1), Attempts: 2, Retransmitted: []time.Time{at(2)}}, both.ID)
	r.note(t, delivery.Progress{SentAt: at(1), Attempts: 1}, both.ID)
	sent.State, sent.SentAt, sent.Attempts = telematics.Sent, at(1), 3
	received.State, received.ReceivedAt = telematics.Received, at(4)
	both.State, both.SentAt, both.Attempts, both.ReceivedAt = telematics.Received, at(1), 4, at(5)
	both.Retransmitted = []time.Time{at(2), at(4), at(8)}
	for _, c := range []telematics.Command{sent, received, both} {
		wantCommand(t, r.open(t, c.ID), c)
	}
}

func progressMovesNothingBack(t *testing.T, r CommandRecord) {
	for _, state := range []telematics.State{telematics.Received, telematics.Succeeded, telematics.Unknown} {
		c := r.claimLock(t)
		was := r.settle(t, settlement(c, state))
		r.note(t, delivery.Progress{SentAt: instant.Add(time.Second), Attempts: 1, ReceivedAt: instant.Add(time.Hour)}, c.ID)
		updates, err := r.Here.Updates(t.Context(), []telematics.CommandID{c.ID}, nil)
		if err != nil || len(updates) != 1 || updates[0].State != state || updates[0].Late || !updates[0].Completed.Equal(was.Completed) {
			t.Errorf("Updates = %+v, %v; want state %s", updates, err, state)
			continue
		}
		if got := updates[0]; got.SentAt.IsZero() || got.Attempts != 1 ||
			!was.ReceivedAt.IsZero() && !got.ReceivedAt.Equal(was.ReceivedAt) {
			t.Errorf("%s: sent at %v, %d attempts, received at %v", state, got.SentAt, got.Attempts, got.ReceivedAt)
		}
		if entries := len(r.Entries(c.ID)); !state.IsOpen() && entries != 1 || state.IsOpen() && entries != 0 {
			t.Errorf("%s: %d audit log entries", state, entries)
		}
	}
}

func settlementStoresProgress(t *testing.T, r CommandRecord) {
	for _, known := range []bool{false, true} {
		fresh, noted := r.claimLock(t), r.claimLock(t)
		first := delivery.Progress{SentAt: instant.Add(time.Second), Attempts: 4, ReceivedAt: instant.Add(2 * time.Second)}
		r.note(t, first, noted.ID)
		for _, c := range []telematics.Command{fresh, noted} {
			s := settlement(c, telematics.Succeeded)
			s.Progress = delivery.Progress{SentAt: instant.Add(3 * time.Second), Attempts: 3, ReceivedAt: instant.Add(4 * time.Second)}
			again := []time.Duration{1500 * time.Millisecond, 4 * time.Second} // after the first
			for _, after := range again {
				s.Retransmitted = append(s.Retransmitted, s.SentAt.Add(after))
			}
			want := s.Progress
			if c.ID == noted.ID {
				want.SentAt, want.Attempts, want.ReceivedAt = first.SentAt, first.Attempts, first.ReceivedAt
			}
			if known {
				s.Known = &c
			}
			got := r.settle(t, s)
			if !got.SentAt.Equal(want.SentAt) || got.Attempts != want.Attempts || !got.ReceivedAt.Equal(want.ReceivedAt) {
				t.Errorf(
					"known %v: sent at %v, %d attempts, received at %v; want %+v", known, got.SentAt, got.Attempts,
					got.ReceivedAt, want,
				)
			}
			if c.ID == fresh.ID && !slices.EqualFunc(got.Retransmitted, s.Retransmitted, time.Time.Equal) ||
				len(got.Retransmitted) != len(again) {
				t.Errorf("known %v: retransmitted at %v, want %v", known, got.Retransmitted, s.Retransmitted)
			}
		}
	}
}

// commandIn returns a new command in a state.
func (r CommandRecord) commandIn(t *testing.T, state telematics.State) telematics.Command {
	t.Helper()
	c := r.claimLock(t)
	switch state {
	case telematics.Accepted:
		return c
	case telematics.Sent:
		r.note(t, delivery.Progress{SentAt: instant.Add(time.Millisecond), Attempts: 1}, c.ID)
		return c
	}
	return r.settle(t, settlement(c, state))
}

func lifecycleIsKept(t *testing.T, r CommandRecord) {
	for _, state := range telematics.States {
		for _, next := range telematics.States {
			c := r.commandIn(t, state)
			before := len(r.Entries(c.ID))
			s := settlement(c, next)
			s.At = s.At.Add(time.Second)
			after, ok, err := r.There.Settle(t.Context(), s)
			if err != nil || ok != state.MayBecome(next) {
				t.Errorf("%s to %s: %v, %v; want %v", state, next, ok, err, state.MayBecome(next))
				continue
			}
			if !ok {
				if after != nil {
					t.Errorf("%s to %s was not applied, but returned %+v", state, next, after)
				}
			} else if after.State != next {
				t.Errorf("%s to %s: the command is %s", state, next, after.State)
			}
			added := len(r.Entries(c.ID)) - before
			if want := ok && !next.IsOpen(); (added == 1) != want || added > 1 {
				t.Errorf("%s to %s added %d audit log entries", state, next, added)
			}
		}
	}
}

func knownCommandIsReturnedAsItIsRead(t *testing.T, r CommandRecord) {
	report := &telematics.Report{At: instant.Truncate(time.Millisecond), Values: map[telematics.Field]any{telematics.IsLocked: true}}
	for _, state := range telematics.States {
		for _, next := range telematics.States {
			for _, reported := range []*telematics.Report{nil, report} {
				c := r.commandIn(t, state)
				c.Protocol, c.Version = telematics.DefaultProtocol, 1 // as they were claimed
				s := settlement(c, next)
				s.At = s.At.Add(time.Second)
				s.Known, s.Reported, s.SentAt, s.Attempts = &c, reported, instant, 2
				got, ok, err := r.Here.Settle(t.Context(), s)
				if err != nil || ok != state.MayBecome(next) {
					t.Errorf("%s to %s: %v, %v; want %v", state, next, ok, err, state.MayBecome(next))
					continue
				}
				if !ok || next == telematics.Sent {
					continue
				}
				read, err := r.There.Updates(t.Context(), []telematics.CommandID{c.ID}, nil)
				if err != nil || len(read) != 1 {
					t.Fatalf("Updates: %v, %v", read, err)
				}
				got.Reported, read[0].Reported = values(got.Reported), values(read[0].Reported)
				wantCommand(t, *got, read[0])
			}
		}
	}
}

func settlementAddsOneEntry(t *testing.T, r CommandRecord) {
	refused := delivery.Settlement{State: telematics.Rejected, Reason: telematics.StateConflict, Detail: telematics.Moving}
	failed := delivery.Settlement{State: telematics.Failed, Detail: "lock"}
	done := delivery.Settlement{State: telematics.Succeeded, Reported: &telematics.Report{
		At: instant.Truncate(time.Millisecond), Values: map[telematics.Field]any{telematics.IsLocked: true, telematics.SpeedKmh: 0.0},
	}}
	after := 1234567 * time.Microsecond
	for i, s := range []delivery.Settlement{refused, failed, done, {State: telematics.Expired}, {State: telematics.Unknown}} {
		ordered := NewCommand(r.Vehicle(), telematics.AttentionSignal)
		ordered.Booking = int64(i) // zero: the first one has none
		c := r.claim(t, ordered)
		s.Command, s.Unit, s.At = c.ID, c.Unit, instant.Add(after)
		after -= 400 * time.Millisecond // the last by a clock that is behind that of the order
		got := r.settle(t, s)
		c.State, c.Reason, c.Detail, c.Completed, c.Reported = s.State, s.Reason, s.Detail, s.At, s.Reported
		got.Reported, c.Reported = values(got.Reported), values(c.Reported)
		wantCommand(t, got, c)
		again := r.settle(t, s) // as a driver does that has lost the reply
		again.Reported = values(again.Reported)
		wantCommand(t, again, c)
		wantEntries(t, r, c.ID, c.Activity())
	}
}

// values returns a report without null values: decoding a stored report may add some.
func values(r *telematics.Report) *telematics.Report {
	if r == nil {
		return nil
	}
	kept := telematics.Report{At: r.At, Values: map[telematics.Field]any{}}
	for field, value := range r.Values {
		if value != nil {
			kept.Values[field] = value
		}
	}
	return &kept
}

func wantEntries(t *testing.T, r CommandRecord, id telematics.CommandID, want ...telematics.Activity) {
	t.Helper()
	got := slices.Clone(r.Entries(id))
	for i := range got {
		if got[i].ID == 0 || i > 0 && got[i].ID <= r.Entries(id)[i-1].ID {
			t.Errorf("audit log entry %d has the id %d", i, got[i].ID)
		}
		got[i].ID = 0
	}
	assert.DeepEqual(t, got, want, "audit log entries")
}

func receivedAddsNoEntry(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	got := r.settle(t, settlement(c, telematics.Received))
	c.State, c.ReceivedAt = telematics.Received, instant.Add(time.Second)
	wantCommand(t, got, c)
	wantCommand(t, r.settle(t, settlement(c, telematics.Received)), c)
	if entries := r.Entries(c.ID); len(entries) > 0 {
		t.Errorf("audit log entries %+v, want none", entries)
	}
}

func lateAnswerSettles(t *testing.T, r CommandRecord) {
	for _, first := range []telematics.State{telematics.Unknown, telematics.Expired, telematics.Rejected} {
		lost := r.commandIn(t, first)
		if lost.Late {
			t.Errorf("%s is late", first)
		}
		answer := settlement(lost, telematics.Succeeded)
		answer.Unit, answer.At = lost.Unit, instant.Add(time.Minute)
		found := r.settle(t, answer)
		if !found.Late || found.Overruled != (first == telematics.Rejected) || found.State != telematics.Succeeded ||
			!found.Completed.Equal(answer.At) {
			t.Errorf("after a late answer: %+v", found)
		}
		wantEntries(t, r, lost.ID, lost.Activity(), found.Activity())
	}
}

func answerOfAnotherUnit(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	s := settlement(c, telematics.Succeeded)
	s.Unit = "another"
	if got, ok, err := r.Here.Settle(t.Context(), s); err != nil || ok {
		t.Errorf("Settle by another unit = %+v, %v, %v", got, ok, err)
	}
	s.Unit = c.Unit
	r.settle(t, s)
}

func settleMissingCommand(t *testing.T, r CommandRecord) {
	c, ok, err := r.Here.Settle(t.Context(), delivery.Settlement{Command: uuid.New(), State: telematics.Succeeded, At: instant})
	if err != nil || ok {
		t.Errorf("Settle = %+v, %v, %v", c, ok, err)
	}
}

func oneOfManyAnswersSettles(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	states := []telematics.State{telematics.Succeeded, telematics.Rejected, telematics.Failed}
	var mu sync.Mutex
	var applied []telematics.Command
	race(30, r.Here, r.There, func(i int, commands broker.Commands) {
		s := settlement(c, states[i%len(states)])
		s.At = s.At.Add(time.Duration(i) * time.Millisecond)
		got, ok, err := commands.Settle(t.Context(), s)
		assert.NoError(t, err, "Settle")
		if ok {
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, *got)
		}
	})
	// One answer settles the command. Where that is a rejection, one success or failure overrules
	// it.
	slices.SortFunc(applied, func(a, b telematics.Command) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	if n := len(applied); n != 1 && (n != 2 || applied[0].State != telematics.Rejected || applied[1].State == telematics.Rejected) {
		t.Fatalf("%d answers settled one command: %+v", n, applied)
	}
	var entries []telematics.Activity
	for _, c := range applied {
		entries = append(entries, c.Activity())
	}
	wantEntries(t, r, c.ID, entries...)
}

// rank orders rejections before the other states.
func rank(s telematics.State) int {
	if s == telematics.Rejected {
		return 0
	}
	return 1
}
