package broker_test

import (
	"testing"
	"time"

	"motorpool/telematics"
)

func TestReceived_OutcomeIsUnknownWhereTheAnswerThatCameFirstCannotBeRead(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.mqtt.fail(nil, errUnavailable)
		w.Break(errUnavailable, "Wake", "Updates")
		time.AfterFunc(time.Second, func() {
			for _, p := range w.Pending.InFlight() {
				w.answer(1, p.Unit, telematics.Answer{Command: p.Command, State: telematics.Succeeded, At: time.Now()})
			}
		})
		c, err := w.send(telematics.Lock)
		if err == nil || err.Outcome != telematics.MayHave {
			t.Errorf("the caller gets %v with the outcome %q, want %q", err, err.Outcome, telematics.MayHave)
		}
		w.wantOutcome(c.ID, telematics.Executed)
	})
}

// The reply does not depend on a record that cannot be written.
func TestReceived_OutcomeIsUnknownThoughThePublisherFailed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.fail(nil, errUnavailable)
		time.AfterFunc(time.Second, func() {
			for _, p := range w.Pending.InFlight() {
				w.answer(0, p.Unit, telematics.Answer{Command: p.Command, State: telematics.Received, At: time.Now()})
			}
		})
		time.AfterFunc(9*time.Second, func() { w.Break(errUnavailable, "Settle", "Updates") })
		time.AfterFunc(20*time.Second, func() { w.Break(nil, "Settle", "Updates") })
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		time.Sleep(30 * time.Second)
		w.wantOutcome(c.ID, telematics.MayHave)
	})
}
