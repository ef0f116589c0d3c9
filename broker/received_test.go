package broker_test

import (
	"testing"
	"time"

	"motorpool/telematics"
)

// answerReceived sends a received answer of the unit for the one command in flight, which the
// broker takes for unpublished.
func (w *world) answerReceived() {
	for _, p := range w.Pending.InFlight() {
		w.answer(0, p.Unit, telematics.Answer{Command: p.Command, State: telematics.Received, At: time.Now()})
	}
}

func TestReceived_OutcomeIsUnknownThoughThePublisherFailed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.fail(nil, errUnavailable)
		time.AfterFunc(time.Second, w.answerReceived)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		time.Sleep(5 * time.Second)
		w.wantOutcome(c.ID, telematics.MayHave)
	})
}

func TestReceived_CommandIsSettledThoughThePublisherFailed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.fail(nil, errUnavailable)
		time.AfterFunc(time.Second, w.answerReceived)
		time.AfterFunc(9*time.Second, func() { w.Break(errUnavailable, "Settle", "Updates") })
		time.AfterFunc(10500*time.Millisecond, func() { w.Break(nil, "Settle", "Updates") })
		c, _ := w.send(telematics.Lock)
		time.Sleep(5 * time.Second) // [LAW-6]
		if got := w.record(c.ID).State; got != telematics.Unknown {
			t.Errorf("the record says %s, want unknown: the unit has received the command", got)
		}
	})
}

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
