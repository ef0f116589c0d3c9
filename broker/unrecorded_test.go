package broker_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestUnrecorded_AReportRecoversTheAnswersToLostCommands(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		succeeded := telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()}
		failed := telematics.Answer{Command: uuid.New(), State: telematics.Failed, Reason: "interrupted", At: time.Now()}
		rejected := telematics.Answer{Command: uuid.New(), State: telematics.Rejected, Reason: telematics.BadSignature, At: time.Now()}
		w.Break(errUnavailable, "StoreUnrecorded")
		for range 3 { // each report has all answers
			w.brokers[0].Report(brokertest.Said(unit, reportWith(succeeded, failed, rejected), false))
			time.Sleep(time.Second)
			w.Break(nil, "StoreUnrecorded")
			// What is not stored comes with the next report.
			w.wantCount(`motorpool_dropped_total{kind="answer", reason="not_stored"}`, 2)
		}
		got := map[telematics.CommandID]telematics.State{}
		for _, u := range w.Commands.Unrecorded() {
			got[u.Answer.Command] = u.Answer.State
		}
		if len(got) != 2 || got[succeeded.Command] != telematics.Succeeded || got[failed.Command] != telematics.Failed {
			t.Errorf("stored %v, want the success and the failure", got)
		}
		assert.Equal(t, metric(t, w.brokers[0], "motorpool_answers_unrecorded_total"), 2, "unrecorded answers counted")
	})
}

// A module repeats no answer, so one is handled once Postgres is available again.
func TestUnrecorded_AnswerThatIsNotRepeatedIsStoredAfterAnOutage(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		w.Break(errUnavailable, "StoreUnrecorded")
		lost := uuid.New()
		w.brokers[0].Answer(w.fromVan("client/motorpool/response/"+lost.String(), vanDone, false))
		time.Sleep(5 * time.Second)
		w.Break(nil, "StoreUnrecorded")
		time.Sleep(2 * time.Second)
		if got := w.Commands.Unrecorded(); len(got) != 1 || got[0].Answer.Command != lost || got[0].Unit != van {
			t.Errorf("stored %+v, want the answer to the lost command", got)
		}
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="not_stored"}`, 0)
		w.wantCount("motorpool_answers_without_effect_total", 1)
	})
}

func TestUnrecorded_LostCommandIsFoundAfterSettledOnesAreForgotten(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.car = func(p publication) {
			w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
		}
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		repeat := func() {
			w.brokers[0].Report(
				brokertest.Said(unit, reportWith(telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()}), false),
			)
			time.Sleep(time.Second)
		}
		repeat()
		w.Commands.Lose(c.ID)
		repeat()
		if got := w.Commands.Unrecorded(); len(got) != 0 {
			t.Fatalf("looked up again without a reason: %+v", got)
		}
		w.brokers[0].ForgetSettled()
		repeat()
		if got := w.Commands.Unrecorded(); len(got) != 1 || got[0].Answer.Command != c.ID {
			t.Errorf("stored %+v, want the lost command", got)
		}
	})
}

func TestUnrecorded_DirectAnswerToALostCommandIsStored(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		lost := telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()}
		w.answer(0, unit, lost)
		time.Sleep(time.Second)
		c, err := w.send(telematics.Lock) // the answer to a recorded command is not stored
		w.wantCode(err, telematics.CommandTimeout)
		w.answer(0, "another-unit", telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
		time.Sleep(time.Second)
		if got := w.Commands.Unrecorded(); len(got) != 1 || got[0].Answer.Command != lost.Command || got[0].Unit != unit {
			t.Errorf("stored %+v, want only the answer to the lost command", got)
		}
	})
}
