package broker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/metrics/metricstest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func TestAnswer_ReadByAnotherInstanceWakesTheCallerImmediately(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.answers(1, 500*time.Millisecond, telematics.Succeeded)
		start := time.Now()
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if took := time.Since(start); took != 500*time.Millisecond {
			t.Errorf("the caller waited %v, want 500 ms", took)
		}
		if c.SentAt.IsZero() || c.Attempts != 1 {
			t.Errorf("settled elsewhere, the command lost what its owner knows: %+v", c)
		}
	})
}

func TestALostWakeUpCostsAtMostASecond(t *testing.T) {
	tests := map[string]func(*world){
		"wake-up lost":  func(w *world) { w.Break(errUnavailable, "Wake") },
		"Redis emptied": func(w *world) { time.AfterFunc(100*time.Millisecond, w.Pending.Flush); w.Break(errUnavailable, "Wake") },
		"Redis away": func(w *world) {
			time.AfterFunc(100*time.Millisecond, func() { w.Break(errUnavailable, "Lookup", "Wake", "Release") })
		},
	}
	for name, breakIt := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				breakIt(w)
				w.answers(1, 500*time.Millisecond, telematics.Succeeded)
				start := time.Now()
				_, err := w.send(telematics.Lock)
				w.wantCode(err, "")
				if took := time.Since(start); took > 1500*time.Millisecond {
					t.Errorf("the caller waited %v for an answer after 500 ms", took)
				}
			})
		})
	}
}

func TestOnlyTheUnitThatWasAskedCanAnswer(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.car = func(p publication) {
			w.answer(0, "another-unit", telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
		}
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
	})
}

func TestRetainedAnswersAreDropped(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.car = func(p publication) {
			w.brokers[0].Answer(brokertest.Said(unit, v1.EncodeAnswer(telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()}), true))
		}
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
	})
}

func TestDuplicateLateAndUnknownAnswersAreCountedAndChangeNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		for _, state := range []telematics.State{telematics.Succeeded, telematics.Failed, telematics.Received} {
			w.answer(0, unit, telematics.Answer{Command: c.ID, State: state, At: time.Now()})
		}
		w.answer(0, unit, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
		synctest.Wait()
		if got := w.record(c.ID); got.State != telematics.Succeeded || got.Late {
			t.Errorf("the record became %s, late %v", got.State, got.Late)
		}
		w.wantEntries("")
		w.wantCount("motorpool_answers_without_effect_total", 4)
	})
}

// A unit that was asked more than once answers more than once.
func TestAnswer_RepeatedAfterSettlementIsNotSettledAgain(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		time.Sleep(time.Second) // until it is not pending any more
		w.Break(errUnavailable, "Settle")
		for _, state := range []telematics.State{telematics.Succeeded, telematics.Received} {
			w.answer(0, unit, telematics.Answer{Command: c.ID, State: state, At: time.Now()})
		}
		synctest.Wait()
		w.wantCount("motorpool_answers_without_effect_total", 2)
		// A unit that is not on record.
		w.answer(0, "another-unit", telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
		synctest.Wait()
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="not_stored"}`, 1)
	})
}

func TestReceivedAfterTheFinalAnswerChangesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.car = func(p publication) {
			w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
			w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Received, At: time.Now()})
		}
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if c.State != telematics.Succeeded {
			t.Errorf("state %s", c.State)
		}
	})
}

func TestAnswer_ToACommandThatWasNotPublishedSettlesIt(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.fail(nil, errUnavailable)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		w.answer(0, unit, telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
		synctest.Wait()
		if got := w.record(c.ID); got.State != telematics.Succeeded || !got.Late {
			t.Errorf("the record says %s, late %v; want succeeded, late", got.State, got.Late)
		}
		w.wantCount("motorpool_answers_to_unsent_total", 1)
	})
}

func TestGarbageIsCountedAndNeverFatal(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		huge := make([]byte, telematics.MaxMessage+1)
		for _, garbage := range [][]byte{nil, {}, []byte("{"), []byte("null"), []byte("[]"), []byte(`{"status":"succeeded"}`), {0xff, 0xfe}, huge} {
			w.brokers[0].Answer(brokertest.Said(unit, garbage, false))
			w.brokers[0].Report(brokertest.Said(unit, garbage, false))
			w.brokers[0].Presence(brokertest.Said(unit, garbage, false))
		}
		time.Sleep(time.Second)
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="malformed"}`, 7)
		// An object without fields is an empty report.
		w.wantCount(`motorpool_dropped_total{kind="report", reason="malformed"}`, 6)
		// An empty message clears the broker's memory.
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="malformed"}`, 5)
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="too_large"}`, 1)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="too_large"}`, 1)
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="too_large"}`, 1)
		w.answers(0, time.Second, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
	})
}

func TestAFullQueueDropsAndCounts(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		c := w.Config()
		c.Publisher, c.QueueSize = w.mqtt, 4
		b := broker.New(c)
		w.brokers = append(w.brokers, b) // nothing runs: nothing is taken off the queues
		for range 10 {
			w.answer(0, unit, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
			b.Report(brokertest.Said(unit, []byte(`{"at":"2026-01-02T10:00:00Z"}`), false))
			b.Presence(brokertest.Said(unit, v1.EncodePresence(telematics.Presence{Status: telematics.Online, At: time.Now()}), false))
		}
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="queue_full"}`, 6)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="queue_full"}`, 6)
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="queue_full"}`, 6)
	})
}

func TestReportsAndPresenceReachTheTwin(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		now := time.Now()
		w.brokers[0].Report(brokertest.Said(unit, v1.EncodeReport(telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: 12.0}}), false))
		w.brokers[1].Report(brokertest.Said(unit, v1.EncodeReport(telematics.Report{At: now.Add(-time.Minute), Values: map[telematics.Field]any{telematics.SpeedKmh: 99.0}}), false))
		w.brokers[0].Report(brokertest.Said(unit, v1.EncodeReport(telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: 77.0}}), true))
		w.brokers[0].Report(brokertest.Said("unknown", v1.EncodeReport(telematics.Report{At: now}), false))
		for _, b := range w.brokers {
			b.Presence(brokertest.Said(unit, v1.EncodePresence(telematics.Presence{Status: telematics.Standby, Session: "s1", At: now}), false))
		}
		time.Sleep(time.Second)
		twin, err := w.Twin(w.Context(), car)
		if err != nil {
			t.Fatal(err)
		}
		if speed := twin.Snapshot.Number(telematics.SpeedKmh); speed == nil || *speed != 12 {
			t.Errorf("speed is %v, want the newest not retained, 12", speed)
		}
		if got := twin.Contact.At(time.Now()); got != telematics.Standby {
			t.Errorf("connectivity is %s, want standby", got)
		}
		w.wantCount("motorpool_unknown_unit_messages_total", 1)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="retained"}`, 1)
	})
}

// wantCount compares a count of the first instance.
func (w *world) wantCount(name string, want int64) {
	w.Helper()
	if got := metric(w, w.brokers[0], name); got != want {
		w.Errorf("%s is %d, want %d", name, got, want)
	}
}

// metric returns the sum of samples of a broker that was built without a registry.
func metric(t testing.TB, b *broker.Broker, samples ...string) int64 {
	t.Helper()
	return metricstest.Sum(t, b.Metrics, samples...)
}
