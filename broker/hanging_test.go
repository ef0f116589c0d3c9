package broker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// slowClaims are commands whose claims do not reply in time, and are committed all the same: later,
// as those that wait for a synchronous standby are, or immediately.
type slowClaims struct {
	broker.Commands
	mu      sync.Mutex
	waiting []*telematics.Command // guarded by mu
}

func (s *slowClaims) Claim(_ context.Context, c *telematics.Command, _ func() (*telematics.Command, error)) (delivery.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
	return delivery.Claim{}, errUnavailable
}

// commit has the rows of the claims appear.
func (s *slowClaims) commit(w *world) {
	w.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.waiting {
		if claim, err := s.Commands.Claim(w.Context(), c, nil); err != nil || !claim.Taken() {
			w.Fatalf("Claim = %+v, %v", claim, err)
		}
	}
	s.waiting = nil
}

// inSlowWorld runs a test with two instances, of which the given one claims slowly.
func inSlowWorld(t *testing.T, instance int, test func(*world, *slowClaims)) {
	t.Helper()
	slow := &slowClaims{}
	wirings := make([]wiring, 2)
	wirings[instance] = func(_ *brokertest.Memory, c *broker.Config) {
		slow.Commands = c.Commands
		c.Commands = slow
		c.Hanging = func() int {
			slow.mu.Lock()
			defer slow.mu.Unlock()
			return len(slow.waiting)
		}
	}
	inWorldOf(t, wirings, func(w *world) { test(w, slow) })
}

// wantExpired fails unless the car has one command, which was never sent, and no instance keeps it.
func (w *world) wantExpired() {
	w.Helper()
	time.Sleep(5 * time.Second)
	entries := w.Entries()
	if last := entries[len(entries)-1]; last.Outcome != telematics.NotExecuted || last.Action != "command.lock" || last.Command == telematics.NoCommand || w.record(last.Command).State != telematics.Expired {
		w.Errorf("the last entry is %+v, want an expired command", last)
	}
	if n := w.count(`motorpool_outbox_items{kind="settlement"}`); n != 0 {
		w.Errorf("%d settlements are kept, want none", n)
	}
}

func TestUnsent_ACommandWhoseClaimIsCommittedMuchLaterIsExpired(t *testing.T) {
	for instance := range 2 {
		inSlowWorld(t, instance, func(w *world, slow *slowClaims) {
			_, err := w.sendVia(instance, w.order(telematics.Lock))
			w.wantCode(err, telematics.TelematicsUnavailable)
			time.Sleep(10 * time.Minute)
			slow.commit(w)
			w.wantExpired()
		})
	}
}

func TestUnsent_TheOutcomeIsKeptWhilePostgresIsUnavailable(t *testing.T) {
	for instance := range 2 {
		inSlowWorld(t, instance, func(w *world, slow *slowClaims) {
			_, err := w.sendVia(instance, w.order(telematics.Lock))
			w.wantCode(err, telematics.TelematicsUnavailable)
			slow.commit(w)
			w.Break(errUnavailable, "Settle", "Overdue")
			time.Sleep(10 * time.Minute)
			w.Break(nil, "Settle", "Overdue")
			w.wantExpired()
		})
	}
}

func TestAuditLog_WhatIsLostIsCounted(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		lost := func(reason string) int64 {
			return metric(t, w.brokers[0], `motorpool_dropped_total{kind="audit_log_entry", reason="`+reason+`"}`)
		}
		w.Break(errUnavailable, "Claim", "Add")
		for range 4096 + 3 {
			_, err := w.send(telematics.Lock)
			w.wantCode(err, telematics.TelematicsUnavailable)
		}
		if n := lost("queue_full"); n != 3 {
			t.Errorf("%d entries are counted as lost for want of room, want 3", n)
		}
		time.Sleep(11 * time.Minute)
		if n := lost("not_stored"); n != 4096 {
			t.Errorf("%d entries are counted as lost by their age, want 4096", n)
		}
	})
}
