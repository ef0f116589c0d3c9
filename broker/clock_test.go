package broker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Each claim returns the database's time, so a wrong clock is found before the first command is
// signed. [LAW-11]
func TestSend_WrongClockPublishesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		record time.Duration // the database's clock minus the instance's
		sent   bool
	}{
		"31 s ahead":                     {-31 * time.Second, false},
		"300 s ahead":                    {-300 * time.Second, false},
		"1.1 s ahead":                    {-1100 * time.Millisecond, false},
		"31 s behind":                    {31 * time.Second, false},
		"0.9 s ahead, within the limit":  {-900 * time.Millisecond, true},
		"0.9 s behind, within the limit": {900 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.answers(0, time.Second, telematics.Succeeded)
				w.Break(errUnavailable, "Time") // only the claim returns the database's time
				w.SetClock(c.record)
				got, err := w.send(telematics.Lock)
				if c.sent {
					w.wantCode(err, "")
					return
				}
				w.wantCode(err, telematics.TelematicsUnavailable)
				if err.Outcome != telematics.NotExecuted || !err.Retryable || got.State != telematics.Expired {
					t.Errorf("error %+v, command %s; want it not executed, and expired", err, got.State)
				}
				if is := w.record(got.ID); is.State != telematics.Expired || is.Attempts != 0 {
					t.Errorf("the record says %s after %d attempts, want expired after none", is.State, is.Attempts)
				} else if is.Completed.Sub(time.Now().Add(c.record)).Abs() > 2*time.Second {
					t.Errorf("settled at %s, which is the wrong clock's time", is.Completed)
				}
				if refused, err := w.send(telematics.Unlock); err == nil || err.Code != telematics.TelematicsUnavailable ||
					refused.ID != telematics.NoCommand {
					t.Errorf("the next order: %+v, %v; want it refused without a command", refused, err)
				}
				w.wantEntries(telematics.TelematicsUnavailable, telematics.TelematicsUnavailable)
				if at := w.Entries()[1].At; at.Sub(time.Now().Add(c.record)).Abs() > 2*time.Second {
					t.Errorf("the audit log dates the refusal %s, which is the wrong clock's time", at)
				}
				assert.Equal(t, len(w.mqtt.published()), 0, "messages published")
			})
		})
	}
}

// Settlements and entries are stored once the database is available again.
func TestSend_UnderAWrongClockIsRecordedOnceTheDatabaseIsAvailable(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": 20 * time.Minute, "behind": -20 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.Break(errUnavailable, "Time")
				w.SetClock(-ahead)
				w.Break(errUnavailable, "Settle", "Add")
				got, err := w.send(telematics.Lock)
				w.wantCode(err, telematics.TelematicsUnavailable)
				_, err = w.send(telematics.Unlock) // refused without a command
				w.wantCode(err, telematics.TelematicsUnavailable)
				time.Sleep(10 * time.Second) // the outbox retries them
				w.Break(nil, "Settle", "Add")
				time.Sleep(10 * time.Second)
				w.wantEntries(telematics.TelematicsUnavailable, telematics.TelematicsUnavailable)
				if is := w.record(got.ID); is.State != telematics.Expired {
					t.Errorf("the record says %s for a command that was not published, want expired", is.State)
				}
			})
		})
	}
}

func TestPublish_WrongClockStopsRetransmission(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		time.AfterFunc(time.Second, func() { w.SetClock(-time.Minute) })
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout) // it was published: its outcome is unknown
		if c.Attempts != 1 || len(w.mqtt.published()) != 1 {
			t.Errorf("%d attempts, %d messages; want one of each", c.Attempts, len(w.mqtt.published()))
		}
	})
}

func TestSweep_WrongClockSweepsNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.SetClock(-time.Minute)
		time.Sleep(time.Second)
		left := brokertest.NewCommand(car, telematics.Lock)
		left.Requested, left.Deadline = time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)
		if claim, err := w.Commands.Claim(w.Context(), &left); err != nil || !claim.Taken() {
			t.Fatalf("Claim = %+v, %v", claim, err)
		}
		time.Sleep(10 * time.Second)
		if is := w.record(left.ID); !is.State.IsOpen() {
			t.Errorf("the overdue command was swept under a wrong clock: %s", is.State)
		}
		w.SetClock(0)
		time.Sleep(10 * time.Second)
		if is := w.record(left.ID); is.State != telematics.Unknown {
			t.Errorf("the overdue command is %s once the clock is right, want unknown", is.State)
		}
	})
}

// slowClock is a store that takes long to return its time.
type slowClock struct {
	broker.Clock
	takes time.Duration
}

func (s slowClock) Time(ctx context.Context) (time.Time, error) {
	theirs, err := s.Clock.Time(ctx) // as it was at the start of the query
	time.Sleep(s.takes)
	return theirs, err
}

// After a slow round trip the offset is uncertain: it can neither make a clock wrong nor right.
func TestCompareClock_SlowRoundTripChangesNothing(t *testing.T) {
	slow := func(_ *brokertest.Memory, c *broker.Config) { c.Clock = slowClock{c.Clock, 2500 * time.Millisecond} }
	inWorldOf(t, []wiring{slow}, func(w *world) {
		b := w.brokers[0]
		assert.NoError(t, b.CompareClock(w.Context()), "a slow round trip made the clock wrong")
		w.SetClock(-time.Minute)
		if err := b.CompareClock(w.Context()); err == nil {
			t.Error("the clock is a minute off, more than the round trip took, and counts as right")
		}
		w.SetClock(0)
		if err := b.CompareClock(w.Context()); err == nil {
			t.Error("a slow round trip made the clock right")
		}
	})
}

// The result is dated within the call, as an instance with a right clock would.
func TestSend_WrongClockAndAStallDateTheResultWithinTheCall(t *testing.T) {
	for name, stalls := range map[string]struct{ before, after time.Duration }{
		"stalls before the clock is read": {before: 2400 * time.Millisecond},
		"stalls after the clock is read":  {after: 2400 * time.Millisecond},
	} {
		for way, ahead := range map[string]time.Duration{"ahead": 2 * time.Minute, "behind": -2 * time.Minute} {
			t.Run(name+", "+way, func(t *testing.T) {
				x := &tampering{}
				x.claim = func(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
					time.Sleep(stalls.before)
					claim, err := x.Commands.Claim(ctx, &c)
					time.Sleep(stalls.after)
					return claim, err
				}
				inWorldOf(t, between(x), func(w *world) {
					w.Break(errUnavailable, "Time")
					w.SetClock(-ahead)
					called := time.Now().Add(-ahead)
					got, err := w.send(telematics.Lock)
					ended := time.Now().Add(-ahead)
					w.wantCode(err, telematics.TelematicsUnavailable)
					if at := w.record(got.ID).Completed; at.Before(called) || at.After(ended) {
						t.Errorf("settled at %s, want a time between call and return, %s to %s", at, called, ended)
					}
				})
			})
		}
	}
}

func TestWhileClockRight_StopsAndRestartsTheFunction(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		var runs, running int
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan error)
		go func() {
			ended <- w.brokers[0].WhileClockRight(ctx, func(ctx context.Context) error {
				runs, running = runs+1, running+1
				<-ctx.Done()
				running--
				return nil
			})
		}()
		for i, step := range []struct {
			clock         time.Duration
			runs, running int
		}{{0, 1, 1}, {-2 * time.Second, 1, 0}, {0, 2, 1}, {2 * time.Second, 2, 0}, {0, 3, 1}} {
			w.SetClock(step.clock)
			time.Sleep(time.Second)
			synctest.Wait()
			if runs != step.runs || running != step.running {
				t.Errorf("step %d: started %d times, %d running; want %d and %d", i, runs, running, step.runs, step.running)
			}
		}
		stop()
		if err := <-ended; err != nil || running != 0 {
			t.Errorf("ended with %v, %d running; want no error and none", err, running)
		}
	})
}

func TestClockAlarm_RaisedByMoreThanOneUnit(t *testing.T) {
	const text = "more than one unit rejects commands as dated ahead of its clock"
	inWorld(t, 1, func(w *world) {
		other := healthy()
		other.ID, other.Unit = 43, "358240051111128"
		w.Put(other)
		w.mqtt.car = func(p publication) {
			of := unit
			if strings.Contains(p.topic, string(other.Unit)) {
				of = other.Unit
			}
			w.answer(
				0, of,
				telematics.Answer{Command: p.claims.Command, State: telematics.Rejected, Reason: telematics.ClockBehind, At: time.Now()},
			)
		}
		for i, step := range []struct {
			vehicle telematics.VehicleID
			pause   time.Duration // before
			alarms  int
		}{{car, 0, 0}, {car, 0, 0}, {43, 2 * time.Minute, 0}, {car, 30 * time.Second, 1}} {
			time.Sleep(step.pause)
			_, err := w.sendVia(0, delivery.Order{Vehicle: step.vehicle, Action: telematics.Lock, Actor: admin, RequestID: uuid.New()})
			w.wantCode(err, telematics.CommandRejected)
			if n := strings.Count(w.log.String(), text); n != step.alarms ||
				metric(t, w.brokers[0], "motorpool_clock_alarms_total") != int64(step.alarms) {
				t.Errorf("rejection %d: %d alarms logged, %d counted; want %d", i+1, n,
					metric(t, w.brokers[0], "motorpool_clock_alarms_total"), step.alarms)
			}
		}
		assert.Equal(t, metric(t, w.brokers[0], "motorpool_answers_clock_behind_total"), 4, "rejections counted")
	})
}

// machine has an instance whose clocks a test sets. Timers stand for its monotonic clock.
type machine struct{ ahead atomic.Int64 }

func (m *machine) wire(_ *brokertest.Memory, c *broker.Config) {
	c.Now = func() time.Time { return time.Now().Add(time.Duration(m.ahead.Load())) }
}

// suspended is what a machine sees that was suspended: the clocks of all have gone on, but for its
// monotonic one.
func (m *machine) suspended(w *world, took time.Duration) {
	w.SetClock(time.Duration(m.ahead.Add(int64(took))))
}

// A reading of the halts from before its machine was suspended is old, however little time has
// passed since by the monotonic clock.
func TestPublish_HaltsReadBeforeTheMachineWasSuspendedAreOld(t *testing.T) {
	var m machine
	inWorldOf(t, []wiring{m.wire}, func(w *world) {
		time.AfterFunc(time.Second/10, func() {
			w.Halt(telematics.Halt{Why: "recall"})
			w.Break(errUnavailable, "Halts") // not yet read again
			m.suspended(w, broker.HaltWithin+time.Second/10)
		})
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		assert.Equal(t, len(w.mqtt.published()), 1, "messages published, of which one before the halt")
	})
}

// A clock that is set back between the claim of a command and its publication makes neither that
// nor its date earlier than it is.
func TestPublish_ClockSetBackBefore(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		sent  int
	}{"in time": {time.Second, 1}, "too late": {telematics.DefaultBudget, 0}} {
		t.Run(name, func(t *testing.T) {
			var m machine
			inWorldOf(t, []wiring{m.wire}, func(w *world) {
				w.answers(0, time.Second, telematics.Succeeded)
				order := w.order(telematics.Lock)
				order.Allowed = func(context.Context) error { // asked after the claim
					w.Break(errUnavailable, "Time")
					m.ahead.Store(int64(-time.Hour))
					time.Sleep(test.takes)
					return nil
				}
				got, _ := w.sendVia(0, order)
				assert.Equal(t, len(w.mqtt.published()), test.sent, "messages published")
				if at := w.record(got.ID).SentAt; test.sent > 0 && at.Before(got.Requested.Add(test.takes)) {
					t.Errorf("published %v after its request, want %v", at.Sub(got.Requested), test.takes)
				}
			})
		})
	}
}

// A clock that has just been set right corrects no time any more.
func TestSend_ClockSetRightDatesTheRefusalRight(t *testing.T) {
	var m machine
	m.ahead.Store(int64(-20 * time.Minute))
	inWorldOf(t, []wiring{m.wire}, func(w *world) {
		m.ahead.Store(0)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		if off := time.Until(w.Entries()[0].At); off.Abs() > time.Second {
			t.Errorf("the refusal is dated %v from now", off)
		}
	})
}
