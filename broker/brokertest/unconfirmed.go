package brokertest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// claimByReport claims a command that a report can confirm.
func (r CommandRecord) claimByReport(t *testing.T, vehicle telematics.VehicleID, deadline time.Time) telematics.Command {
	t.Helper()
	c := NewCommand(vehicle, telematics.Lock)
	c.BestEffort.ByReport, c.Deadline = true, deadline
	return r.claim(t, c)
}

// endUnknown settles a command as sent and not confirmed.
func (r CommandRecord) endUnknown(t *testing.T, c telematics.Command) telematics.Command {
	t.Helper()
	s := settlement(c, telematics.Unknown)
	s.SentAt, s.Attempts = c.Requested.Add(time.Millisecond), 1
	return r.settle(t, s)
}

// unconfirmed returns the unconfirmed commands, which it reads in pages of one.
func (r CommandRecord) unconfirmed(t *testing.T, since time.Time) (ids []telematics.CommandID) {
	t.Helper()
	for last := (telematics.Command{}); ; {
		found, err := r.There.Unconfirmed(t.Context(), since, last, 1)
		if err != nil || len(found) > 1 {
			t.Fatalf("Unconfirmed = %+v, %v", found, err)
		}
		if len(found) == 0 {
			return ids
		}
		last = found[0]
		ids = append(ids, last.ID)
	}
}

// conclude concludes a command through both instances concurrently, and returns the result; nil:
// the command was not unconfirmed.
func (r CommandRecord) conclude(t *testing.T, id telematics.CommandID, state telematics.State) *telematics.Command {
	t.Helper()
	var concluded atomic.Pointer[telematics.Command]
	var times atomic.Int32
	var both sync.WaitGroup
	for i, commands := range []interface {
		Conclude(context.Context, delivery.Settlement) (*telematics.Command, bool, error)
	}{r.Here, r.There} {
		both.Go(func() {
			at := instant.Add(time.Minute + time.Duration(i)*time.Millisecond)
			c, ok, err := commands.Conclude(t.Context(), delivery.Settlement{Command: id, State: state, At: at})
			if err != nil || ok == (c == nil) {
				t.Errorf("Conclude = %+v, %t, %v", c, ok, err)
			}
			if ok {
				concluded.Store(c)
				times.Add(1)
			}
		})
	}
	both.Wait()
	if times.Load() > 1 {
		t.Errorf("%s was concluded %d times", id, times.Load())
	}
	return concluded.Load()
}

// start returns a time at which no other test's commands have their deadline.
func (r CommandRecord) start() time.Time {
	return instant.AddDate(1, 0, 0).Add(time.Duration(r.Vehicle()) * time.Hour)
}

func unconfirmedIsConcludedOnce(t *testing.T, r CommandRecord) {
	for _, state := range []telematics.State{telematics.Succeeded, telematics.Unknown} {
		at := r.start()
		c := r.claimByReport(t, r.Vehicle(), at)
		if open := r.unconfirmed(t, at.Add(-time.Second)); len(open) > 0 || r.conclude(t, c.ID, state) != nil {
			t.Errorf("an open command is unconfirmed: %v", open)
		}
		was := r.endUnknown(t, c)
		if found := r.unconfirmed(t, at.Add(-time.Second)); !slices.Equal(found, []telematics.CommandID{c.ID}) {
			t.Errorf("unconfirmed: %v, want %s", found, c.ID)
		}
		got := r.conclude(t, c.ID, state)
		if got == nil || got.State != state || got.Late != (state == telematics.Succeeded) ||
			got.BestEffort.Contradicted != (state == telematics.Unknown) ||
			!got.SentAt.Equal(was.SentAt) {
			t.Errorf("concluded as %s: %+v", state, got)
		}
		if found := r.unconfirmed(t, at.Add(-time.Second)); len(found) > 0 || r.conclude(t, c.ID, state) != nil {
			t.Errorf("unconfirmed after it was concluded: %v", found)
		}
		if state == telematics.Unknown { // the answer of its unit overrules the report
			late := settlement(c, telematics.Succeeded)
			late.Unit = c.Unit
			if got := r.settle(t, late); got.State != telematics.Succeeded || !got.Late || !got.BestEffort.Contradicted {
				t.Errorf("answered late: %+v", got)
			}
		}
	}
}

func notUnconfirmed(t *testing.T, r CommandRecord) {
	at := r.start()
	other := func(change func(*telematics.Command), sent bool) telematics.Command {
		c := NewCommand(r.Vehicle(), telematics.Lock)
		c.BestEffort.ByReport, c.Deadline = true, at
		change(&c)
		c = r.claim(t, c)
		if !sent {
			return r.settle(t, settlement(c, telematics.Unknown))
		}
		return r.endUnknown(t, c)
	}
	none := map[string]telematics.Command{
		"confirmed by its unit's answer": other(func(c *telematics.Command) { c.BestEffort.ByReport = false }, true),
		"the value was reported before":  other(func(c *telematics.Command) { c.BestEffort.ReportedBefore = true }, true),
		"not sent":                       other(func(*telematics.Command) {}, false),
		"its deadline is before since":   other(func(c *telematics.Command) { c.Deadline = at.Add(-time.Minute) }, true),
	}
	before := other(func(*telematics.Command) {}, true)
	next := NewCommand(before.Vehicle, telematics.Unlock)
	next.Deadline = at
	r.settle(t, settlement(r.claim(t, next), telematics.Succeeded))
	none["a later command may have caused the value"] = before
	if found := r.unconfirmed(t, at.Add(-time.Second)); len(found) > 0 {
		t.Errorf("unconfirmed: %v of %v", found, none)
	}
	for why, c := range none {
		if got := r.conclude(t, c.ID, telematics.Succeeded); got != nil && why != "its deadline is before since" {
			t.Errorf("%s: concluded as %+v", why, got)
		}
	}
	waits := other(func(*telematics.Command) {}, true)
	r.claim(t, NewCommand(waits.Vehicle, telematics.ReportState)) // in another lane
	if got := r.conclude(t, waits.ID, telematics.Unknown); got == nil || !got.BestEffort.Contradicted {
		t.Errorf("after a ReportState command: %+v", got)
	}
}

func unconfirmedAreOrdered(t *testing.T, r CommandRecord) {
	at := r.start()
	var want []telematics.CommandID
	for i := range 5 {
		c := r.endUnknown(t, r.claimByReport(t, r.Vehicle(), at.Add(time.Duration(i/2)*time.Second)))
		want = append(want, c.ID)
	}
	for i := 0; i < 4; i += 2 { // with the same deadline, by id
		if slices.Compare(want[i][:], want[i+1][:]) > 0 {
			want[i], want[i+1] = want[i+1], want[i]
		}
	}
	assert.EqualSlices(t, r.unconfirmed(t, at.Add(-time.Second)), want, "unconfirmed")
	assert.EqualSlices(t, r.unconfirmed(t, at.Add(time.Second)), want[4:], "unconfirmed since the second deadline")
}
