package broker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/metricstest"
	"motorpool/internal/require"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func TestAnswer_ReadByAnotherInstanceWakesTheCallerImmediately(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.answers(1, 500*time.Millisecond, telematics.Succeeded)
		start := time.Now()
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		assert.Equal(t, time.Since(start), 500*time.Millisecond, "the caller waited")
		if c.SentAt.IsZero() || c.Attempts != 1 {
			t.Errorf("the command was settled by another instance: sent at %v, %d attempts; want the owner's values", c.SentAt, c.Attempts)
		}
	})
}

func TestAnswer_LostWakeUpDelaysTheCallerByAtMostASecond(t *testing.T) {
	tests := map[string]func(*world){
		"wake-up lost":  func(w *world) { w.Break(errUnavailable, "Wake") },
		"Redis emptied": func(w *world) { time.AfterFunc(100*time.Millisecond, w.Pending.Flush); w.Break(errUnavailable, "Wake") },
		"Redis unavailable": func(w *world) {
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
					t.Errorf("the caller waited %v for an answer given after 500 ms, want at most 1.5 s", took)
				}
			})
		})
	}
}

// Not even is the command no longer published, as after a rejection by its own unit.
func TestAnswer_FromAnotherUnitIsIgnored(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		copies := 0
		w.mqtt.car = func(p publication) {
			if copies++; copies == 2 {
				w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
				return
			}
			for _, a := range []telematics.Answer{
				{State: telematics.Received}, {State: telematics.Succeeded}, {State: telematics.Rejected, Reason: telematics.BadSignature},
			} {
				a.Command, a.At = p.claims.Command, time.Now()
				w.answer(0, "another-unit", a)
			}
		}
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if got := w.record(c.ID); got.State != telematics.Succeeded || !got.ReceivedAt.IsZero() || copies != 2 {
			t.Errorf("the record says %s after %d copies, received %v; want succeeded after 2", got.State, copies, got.ReceivedAt)
		}
		w.wantCount("motorpool_answers_without_effect_total", 3)
	})
}

func TestAnswer_RetainedIsDropped(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.car = func(p publication) {
			w.brokers[0].Answer(
				brokertest.Said(
					unit,
					v1.EncodeAnswer(telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()}),
					true,
				),
			)
		}
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
	})
}

func TestAnswer_DuplicateOrUnknownIsCountedAndChangesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		time.Sleep(time.Millisecond)
		for _, state := range []telematics.State{telematics.Succeeded, telematics.Failed, telematics.Received} {
			w.answer(0, unit, telematics.Answer{Command: c.ID, State: state, At: time.Now()})
		}
		w.answer(0, unit, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
		synctest.Wait()
		if got := w.record(c.ID); got.State != telematics.Succeeded || got.Late {
			t.Errorf("the record says %s, late %v; want succeeded, not late", got.State, got.Late)
		}
		w.wantEntries("")
		w.wantCount("motorpool_answers_without_effect_total", 4)
	})
}

// A unit that receives a command more than once answers it more than once.
func TestAnswer_RepeatedAfterSettlementIsNotSettledAgain(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		time.Sleep(time.Second) // until it is removed from the pending table
		w.Break(errUnavailable, "Settle")
		for _, state := range []telematics.State{telematics.Succeeded, telematics.Received} {
			w.answer(0, unit, telematics.Answer{Command: c.ID, State: state, At: time.Now()})
		}
		synctest.Wait()
		w.wantCount("motorpool_answers_without_effect_total", 2)
		// No vehicle has this unit.
		w.answer(0, "another-unit", telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
		synctest.Wait()
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="not_stored"}`, 1)
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

// A sweeper does not know whether the owner has published a command: an answer to it is no alarm.
func TestAnswer_ToASweptCommandIsNoAlarm(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		c := w.claimed(telematics.DefaultBudget) // by an instance that is gone
		time.Sleep(time.Minute)
		if got := w.record(c.ID); got.State != telematics.Unknown {
			t.Fatalf("the record says %s, want unknown, by the sweeper", got.State)
		}
		w.answer(0, unit, telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
		synctest.Wait()
		if got := w.record(c.ID); got.State != telematics.Succeeded || !got.Late {
			t.Errorf("the record says %s, late %v; want succeeded, late", got.State, got.Late)
		}
		w.wantCount("motorpool_answers_to_unsent_total", 0)
	})
}

// One unit may invent ids of commands; several mean that Postgres has lost commands.
func TestAnswer_ToUnrecordedCommandsIsCountedByUnit(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for n := range 3 {
			w.answer(0, unit, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
			synctest.Wait()
			w.wantCount("motorpool_answers_unrecorded_total", int64(n)+1)
			w.wantCount("motorpool_answers_unrecorded_units", 1)
		}
		time.Sleep(11 * time.Minute)
		w.wantCount("motorpool_answers_unrecorded_units", 0)
	})
}

func TestAnswer_MalformedMessagesAreCountedAndDropped(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		huge := make([]byte, telematics.MaxMessage+1)
		for _, garbage := range [][]byte{
			nil, {}, []byte("{"), []byte("null"), []byte("[]"), []byte(`{"status":"succeeded"}`), {0xff, 0xfe}, huge,
		} {
			w.brokers[0].Answer(brokertest.Said(unit, garbage, false))
			w.brokers[0].Report(brokertest.Said(unit, garbage, false))
			w.brokers[0].Presence(brokertest.Said(unit, garbage, false))
		}
		time.Sleep(time.Second)
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="malformed"}`, 7)
		// An object without fields is an empty report, so `{"status":"succeeded"}` is not malformed
		// here.
		w.wantCount(`motorpool_dropped_total{kind="report", reason="malformed"}`, 6)
		// An empty message is what the MQTT broker delivers when a retained presence is deleted.
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="malformed"}`, 5)
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="too_large"}`, 1)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="too_large"}`, 1)
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="too_large"}`, 1)
		invalid := []byte(`{"telemetry":{"speed_kmh":900,"mileage_km":"far","ignition":"maybe","gear":"N"}}`)
		w.brokers[0].Report(brokertest.Said(unit, invalid, false))
		time.Sleep(time.Second)
		for _, reason := range []string{"out_of_range", "wrong_type", "unknown_word"} {
			w.wantCount(`motorpool_report_fields_dropped_total{reason="`+reason+`"}`, 1)
		}
		w.answers(0, time.Second, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
	})
}

func TestAnswer_FullQueueDropsAndCounts(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		c := w.Config()
		c.Publisher, c.QueueSize, c.Dialects = w.mqtt, 4, spoken
		b := broker.New(c)
		w.brokers = append(w.brokers, b) // Run is not called: nothing is read from the queues
		for n := range 10 {
			w.answer(0, unit, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
			b.Report(brokertest.Said(unit, []byte(`{"at":"2026-01-02T10:00:00Z"}`), false))
			online := v1.EncodePresence(telematics.Presence{Status: telematics.Online, At: time.Now()})
			// What is refused is read again: see TestCatchUp_RefusedPresenceIsReadAgain.
			assert.Equal(t, b.Presence(brokertest.Said(unit, online, false)), n < 4, "presence %d is taken", n)
		}
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="queue_full"}`, 6)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="queue_full"}`, 6)
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="queue_full"}`, 6)
		// A module does not repeat its answer. As many wait for room as a queue has.
		for range 4 + 1 {
			b.Answer(w.fromVan("client/motorpool/response/"+uuid.NewString(), vanDone, false))
		}
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="queue_full"}`, 7)
	})
}

func TestAnswer_ReportsAndPresenceReachTheTwin(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		now := time.Now()
		w.reports(0, telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: 12.0}})
		w.reports(1, telematics.Report{At: now.Add(-time.Minute), Values: map[telematics.Field]any{telematics.SpeedKmh: 99.0}})
		w.brokers[0].Report(
			brokertest.Said(
				unit,
				v1.EncodeReport(telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: 77.0}}),
				true,
			),
		)
		w.brokers[0].Report(brokertest.Said("unknown", v1.EncodeReport(telematics.Report{At: now}), false))
		for _, b := range w.brokers {
			b.Presence(
				brokertest.Said(unit, v1.EncodePresence(telematics.Presence{Status: telematics.Standby, Session: "s1", At: now}), false),
			)
		}
		time.Sleep(time.Second)
		twin, err := w.Twin(w.Context(), car)
		require.NoError(t, err)
		if speed := twin.Snapshot.Number(telematics.SpeedKmh); speed == nil || *speed != 12 {
			t.Errorf("speed is %v, want 12, the newest one that was not retained", speed)
		}
		assert.Equal(t, twin.Contact.At(time.Now()), telematics.Standby, "connectivity")
		w.wantCount("motorpool_unknown_unit_messages_total", 1)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="retained"}`, 1)
	})
}

// wantCount compares a counter of the first instance.
func (w *world) wantCount(name string, want int64) {
	w.Helper()
	assert.Equal(w, metric(w, w.brokers[0], name), want, "%s", name)
}

// metric returns the sum of samples of a broker that was built without a registry.
func metric(t testing.TB, b *broker.Broker, samples ...string) int64 {
	t.Helper()
	return metricstest.Sum(t, b.Metrics(), samples...)
}
