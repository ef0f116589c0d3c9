package broker_test

import (
	"strings"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

// rejection is a unit's rejection of a command.
func rejection(p publication, reason string) telematics.Answer {
	return telematics.Answer{Command: p.claims.Command, State: telematics.Rejected, Reason: reason, At: time.Now()}
}

func TestRejection_OfAnUnverifiedCommandLeavesTheOutcomeOpen(t *testing.T) {
	const reason = telematics.BadSignature
	for name, by := range map[string]int{"to its owner": 0, "to another instance": 1} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				w.mqtt.car = func(p publication) { w.answer(by, unit, rejection(p, reason)) }
				order := w.named(telematics.Lock, "k")
				order.Budget = telematics.MaxBudget
				start := time.Now()
				r, err := w.repeat(0, order)
				w.wantCode(err, telematics.CommandRejected)
				if err.Outcome != telematics.MayHave || err.Retryable || err.Reason != reason || time.Since(start) > time.Second {
					t.Errorf(
						"after %v: %+v; want within 1 s the outcome open, not retryable, reason %q",
						time.Since(start), err, reason,
					)
				}
				again, err := w.repeat(1, order) // it is not published again
				w.wantCode(err, telematics.CommandRejected)
				if !again.Replayed || again.Command.ID != r.Command.ID || err.Outcome != telematics.MayHave {
					t.Errorf("the repeated order: %+v, %v; want the first command's result", again, err)
				}
				time.Sleep(time.Minute)
				if n := len(w.mqtt.published()); n != 1 {
					t.Errorf("published %d times, want once: another copy might be executed", n)
				}
				// Time alone does not prove that no copy was executed.
				assert.Equal(t, w.record(r.Command.ID).State.Outcome(), telematics.MayHave, "a minute later the outcome")
				w.answer(1, unit, telematics.Answer{Command: r.Command.ID, State: telematics.Succeeded, At: time.Now()})
				time.Sleep(time.Second)
				if c := w.record(r.Command.ID); c.State != telematics.Succeeded || !c.Late || c.Overruled || c.Reason != "" {
					t.Errorf("after the success of another copy: %+v, want succeeded late", c)
				}
			})
		})
	}
}

func TestRejection_OfAnUnverifiedCommandStopsRetransmissionWhileTheRecordIsUnavailable(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.car = func(p publication) {
			w.Break(errUnavailable, "Settle", "Updates")
			w.answer(0, unit, rejection(p, telematics.BadSignature))
		}
		c, err := w.send(telematics.Lock)
		if n := len(w.mqtt.published()); err == nil || err.Outcome != telematics.MayHave || n != 1 {
			t.Errorf("%+v, published %d times; want the outcome open, published once", err, n)
		}
		w.Break(nil, "Settle", "Updates")
		time.Sleep(5 * time.Second)
		w.wantOutcome(c.ID, telematics.MayHave)
	})
}

func TestRejection_ContradictedBySuccessIsOverruledAndLogged(t *testing.T) {
	for name, say := range map[string]func(*world, telematics.Answer){
		"in an answer": func(w *world, a telematics.Answer) { w.answer(0, unit, a) },
		"in a report": func(w *world, a telematics.Answer) {
			w.brokers[0].Report(brokertest.Said(unit, reportWith(a), false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.mqtt.car = func(p publication) { w.answer(0, unit, rejection(p, telematics.StateConflict)) }
				c, err := w.send(telematics.Lock)
				w.wantCode(err, telematics.VehicleStateConflict)
				for range 2 {
					say(w, telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
					time.Sleep(time.Second)
				}
				if got := w.record(c.ID); got.State != telematics.Succeeded || !got.Late || !got.Overruled {
					t.Errorf("recorded %+v, want a late success that overruled the rejection", got)
				}
				w.wantEntries(telematics.VehicleStateConflict, "")
				assert.Equal(t, metric(t, w.brokers[0], "motorpool_answers_overruling_total"), 1, "answers_overruling")
				if n := strings.Count(w.log.String(), "a vehicle executed a command that its unit had rejected"); n != 1 {
					t.Errorf("%d alarms, want 1:\n%s", n, w.log.String())
				}
			})
		})
	}
}
