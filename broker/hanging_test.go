package broker_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
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

func (s *slowClaims) Claim(_ context.Context, c *telematics.Command) (delivery.Claim, error) {
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
		if claim, err := s.Commands.Claim(w.Context(), c); err != nil || !claim.Taken() {
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
	if last := entries[len(entries)-1]; last.Outcome != telematics.NotExecuted || last.Action != "command.lock" ||
		last.Command == telematics.NoCommand ||
		w.record(last.Command).State != telematics.Expired {
		w.Errorf("the last entry is %+v, want an expired command", last)
	}
	assert.Equal(w, w.count(`motorpool_outbox_items{kind="settlement"}`), 0, "settlements kept")
}

func TestUnsent_TheOutcomeIsKeptForACommandWhoseClaimDidNotReply(t *testing.T) {
	for instance, then := range []func(*world, *slowClaims){
		func(w *world, slow *slowClaims) { // the claim is committed much later
			time.Sleep(10 * time.Minute)
			slow.commit(w)
		},
		func(w *world, slow *slowClaims) {
			slow.commit(w)
			w.Break(errUnavailable, "Settle", "Overdue")
			time.Sleep(10 * time.Minute)
			w.Break(nil, "Settle", "Overdue")
		},
	} {
		inSlowWorld(t, instance, func(w *world, slow *slowClaims) {
			_, err := w.sendVia(instance, w.order(telematics.Lock))
			w.wantCode(err, telematics.TelematicsUnavailable)
			then(w, slow)
			w.wantExpired()
		})
	}
}

func TestAuditLog_WhatIsLostIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		orders int
		wait   time.Duration
		reason string
		lost   int64
	}{
		"no room":  {4096 + 3, 0, "queue_full", 3},
		"too long": {10, 11 * time.Minute, "not_stored", 10},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.Break(errUnavailable, "Claim", "Add")
				for range c.orders {
					_, err := w.send(telematics.Lock)
					w.wantCode(err, telematics.TelematicsUnavailable)
				}
				time.Sleep(c.wait)
				if n := metric(t, w.brokers[0], `motorpool_dropped_total{kind="audit_log_entry", reason="`+c.reason+`"}`); n != c.lost {
					t.Errorf("%d entries are counted as lost, want %d", n, c.lost)
				}
			})
		})
	}
}

// After an outage of Postgres, an owner with a long outbox keeps its commands for as long as it
// lives, and half a minute at most.
func TestOverdue_IsLeftToAnOwnerThatLives(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		lives bool
		want  telematics.State
		after time.Duration // the outage; the state is final
	}{
		"an outbox that takes 20 s": {20 * time.Second, true, telematics.Expired, 22 * time.Second},
		"an owner that hangs":       {time.Hour, true, telematics.Unknown, 32 * time.Second},
		"an owner that is dead":     {time.Hour, false, telematics.Unknown, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			owner := &tampering{}
			// Until then it settles none: its statements of thousands come first.
			var until atomic.Int64
			owner.settle = func(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
				if time.Now().UnixNano() < until.Load() {
					return nil, false, errUnavailable
				}
				return owner.Commands.Settle(ctx, s)
			}
			inWorldOf(t, []wiring{owner.wire, func(_ *brokertest.Memory, config *broker.Config) {
				config.Lives = func(string) bool { return c.lives }
			}}, func(w *world) {
				w.mqtt.fail(nil, errUnavailable) // the owner knows that nothing was sent
				w.Break(errUnavailable, "Settle", "Overdue")
				command, err := w.send(telematics.Lock)
				w.wantCode(err, telematics.TelematicsUnavailable)
				time.Sleep(time.Minute)
				until.Store(time.Now().Add(c.takes).UnixNano())
				w.Break(nil, "Settle", "Overdue")
				if !c.lives {
					w.stops[0]()
					w.stops = w.stops[1:]
				}
				time.Sleep(c.after)
				if got := w.record(command.ID).State; got != c.want {
					t.Errorf("the command is %s %v after the outage, want %s", got, c.after, c.want)
				}
			})
		})
	}
}

// At its deadline a command is its living owner's, which knows that it was never sent, also by a
// clock that is ahead of the owner's.
func TestOverdue_ALivingOwnerSettlesAtTheDeadline(t *testing.T) {
	for name, clocks := range map[string][2]time.Duration{
		"equal clocks": {}, "clocks that differ": {-900 * time.Millisecond, 900 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			owner := &tampering{}
			owner.settle = func(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
				time.Sleep(50 * time.Millisecond)
				return owner.Commands.Settle(ctx, s)
			}
			inWorldOf(t, []wiring{func(m *brokertest.Memory, c *broker.Config) {
				owner.wire(m, c)
				clockAhead(clocks[0])(m, c)
			}, clockAhead(clocks[1])}, func(w *world) {
				w.mqtt.fail(nil, errUnavailable)
				for phase := range 5 { // of the sweeper
					time.Sleep(170 * time.Millisecond)
					var other sync.WaitGroup
					if phase == 0 { // it is repeated when its budget is over
						other.Go(func() {
							time.Sleep(10*time.Second + time.Millisecond)
							_, err := w.sendVia(1, w.order(telematics.Unlock))
							w.wantCode(err, telematics.CommandInProgress)
						})
					}
					c, _ := w.send(telematics.Lock)
					other.Wait()
					assert.Equal(t, c.State, telematics.Expired, "the reply")
					w.wantOutcome(c.ID, telematics.NotExecuted)
				}
			})
		})
	}
}

// A slow sweep finds the command of an owner that lives, and does not settle it, later than usual.
func TestOverdue_ALateSweepSettlesIt(t *testing.T) {
	for phase := range 6 { // of the sweeper
		owner := &tampering{}
		owner.settle = func(context.Context, delivery.Settlement) (*telematics.Command, bool, error) {
			return nil, false, errUnavailable
		}
		inWorldOf(t, []wiring{owner.wire, func(_ *brokertest.Memory, c *broker.Config) {
			c.Lives = func(string) bool { return true }
			c.Commands = slowSweep{c.Commands}
		}}, func(w *world) {
			time.Sleep(time.Duration(phase) * 500 * time.Millisecond)
			w.mqtt.fail(nil, errUnavailable)
			c, _ := w.send(telematics.Lock)
			time.Sleep(time.Until(c.Deadline.Add(7 * time.Second)))
			assert.Equal(t, w.record(c.ID).State, telematics.Unknown, "7 s after the deadline, phase %d", phase)
		})
	}
}

// slowSweep takes as long as a statement may to find what is overdue.
type slowSweep struct{ broker.Commands }

func (s slowSweep) Overdue(ctx context.Context, before time.Time, limit int) ([]telematics.Command, error) {
	defer time.Sleep(2500 * time.Millisecond)
	return s.Commands.Overdue(ctx, before, limit)
}

// An installation that starts again soon settles what its instances left, also where each of them
// ends before it has settled any: owners have had time since the start.
func TestOverdue_OwnersHaveTimeFromTheStart(t *testing.T) {
	c := brokertest.NewCommand(car, telematics.Lock)
	inWorldOf(t, []wiring{func(memory *brokertest.Memory, _ *broker.Config) {
		c.Instance, c.Requested, c.Deadline = "dead", time.Now().Add(-time.Minute), time.Now().Add(-50*time.Second)
		_, err := memory.Commands.Claim(t.Context(), &c)
		require.NoError(t, err)
	}}, func(w *world) {
		time.Sleep(2500 * time.Millisecond)
		assert.Equal(t, w.record(c.ID).State, telematics.Unknown, "the command of a dead owner, 2.5 s after the start")
	})
}

// Hundreds of commands that are left to their owner do not hold up those of a dead one.
func TestOverdue_WhatIsLeftToItsOwnerHoldsUpNoOther(t *testing.T) {
	inWorldOf(t, []wiring{func(_ *brokertest.Memory, config *broker.Config) {
		config.Lives = func(instance string) bool { return instance == "lives" }
	}}, func(w *world) {
		w.Break(errUnavailable, "Overdue")
		var commands []telematics.Command
		for n := range 600 {
			twin := healthy()
			twin.ID, twin.Unit = telematics.VehicleID(1000+n), telematics.Unit(fmt.Sprint("unit-", 1000+n))
			w.Put(twin)
			c := brokertest.NewCommand(twin.ID, telematics.Lock)
			c.Instance = "lives"
			if n == 599 { // the one with the latest deadline
				c.Instance = "dead"
			}
			time.Sleep(time.Millisecond)
			c.Requested, c.Deadline = time.Now(), time.Now().Add(10*time.Second)
			if _, err := w.Commands.Claim(w.Context(), &c); err != nil {
				t.Fatal(err)
			}
			commands = append(commands, c)
		}
		time.Sleep(20 * time.Second)
		w.Break(nil, "Overdue")
		for _, test := range []struct {
			after time.Duration
			lives telematics.State
		}{{4 * time.Second, telematics.Accepted}, {time.Minute, telematics.Unknown}} {
			time.Sleep(test.after)
			if dead, lives := w.record(commands[599].ID).State,
				w.record(commands[0].ID).State; dead != telematics.Unknown || lives != test.lives {
				t.Errorf("after %v the dead one's is %s, the other's %s; want unknown and %s", test.after, dead, lives, test.lives)
			}
		}
	})
}
