package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

var droppedEvents = []string{
	`motorpool_dropped_total{kind="event", reason="queue_full"}`,
	`motorpool_dropped_total{kind="event", reason="not_stored"}`,
}

// publishedOf returns a word for each event of one vehicle, in their order: the state of a command,
// the connectivity, or a field and its value.
func (w *world) publishedOf(id telematics.VehicleID) []string {
	var said []string
	for _, e := range w.Events.All() {
		switch {
		case e.Kind == telematics.ResetEvent:
			said = append(said, "reset")
		case e.Vehicle != id:
		case e.Kind == telematics.CommandEvent:
			said = append(said, string(e.Command.State))
		case e.Kind == telematics.PresenceEvent:
			said = append(said, string(e.Change.Presence))
		default:
			for field, reading := range e.Change.Fields.All() {
				said = append(said, fmt.Sprintf("%s=%v", field, reading.Value))
			}
		}
	}
	return said
}

func (w *world) wantEvents(want ...string) {
	w.Helper()
	time.Sleep(100 * time.Millisecond) // virtual time, in which the queue is published
	assert.EqualSlices(w, w.publishedOf(car), want, "published")
}

func TestEvents_OfALateAnswerComeFromTheInstanceThatGetsIt(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		time.Sleep(time.Second / 3) // else the outbox, too, stores the outcome at the deadline
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		time.Sleep(10 * time.Millisecond) // the two instances publish independently
		w.answer(1, unit, telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
		w.wantEvents("accepted", "sent", "unknown", "succeeded")
		if got := w.record(c.ID); got.State != telematics.Succeeded || !got.Late {
			t.Errorf("the record says %s, late %v; want succeeded, late", got.State, got.Late)
		}
		w.wantEntries(telematics.CommandTimeout, "")
	})
}

func TestEvents_OfAReportArePublishedOnceAmongAllInstances(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		report := func(instance int, speed float64) {
			w.reports(instance, telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.SpeedKmh: speed}})
			time.Sleep(time.Second)
		}
		report(0, 50)
		report(1, 50)
		report(1, 60)
		w.wantEvents("telemetry.speed_kmh=50", "telemetry.speed_kmh=60")
	})
}

func TestEvents_OfSilenceArePublishedOnceAmongAllInstances(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		time.Sleep(telematics.OnlineFor)
		w.wantEvents()
		time.Sleep(6 * time.Second)
		w.wantEvents("unknown")
		for i := range w.brokers { // every instance gets presence
			w.says(i, telematics.Presence{Status: telematics.Online, Session: "s", At: time.Now()})
		}
		w.wantEvents("unknown", "online")
		time.Sleep(time.Minute)
		w.wantEvents("unknown", "online")
	})
}

func TestEvents_NoneIsLostInAShortOutageOfTheLog(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 100*time.Millisecond, telematics.Succeeded)
		w.Events.Break(errUnavailable)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		time.Sleep(3 * time.Second)
		w.Events.Break(nil)
		time.Sleep(time.Second)
		w.wantEvents("accepted", "sent", "succeeded")
	})
}

func TestEvents_DroppedEventsCauseAReset(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 100*time.Millisecond, telematics.Succeeded)
		w.Events.Break(errors.New("connection refused"))
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		time.Sleep(20 * time.Second)
		w.Events.Break(nil)
		assert.Equal(t, metric(t, w.brokers[0], droppedEvents...), 3, "events dropped")
		time.Sleep(2 * time.Second)
		w.wantEvents("reset") // without any further event
		_, err = w.send(telematics.Unlock)
		w.wantCode(err, "")
		w.wantEvents("reset", "accepted", "sent", "succeeded")
	})
}

func TestEvents_HangingLogDelaysNoCommand(t *testing.T) {
	x := &tampering{}
	inWorldOf(t, between(x), func(w *world) {
		w.answers(0, 100*time.Millisecond, telematics.Succeeded)
		x.hang.Store(true)
		begin := time.Now()
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if took := time.Since(begin); took > 150*time.Millisecond {
			t.Errorf("the command took %v, want at most 150 ms", took)
		}
		x.hang.Store(false)
	})
}

func TestReports_OverflowIsCountedAndLogged(t *testing.T) {
	x := &tampering{}
	small := func(m *brokertest.Memory, c *broker.Config) {
		x.wire(m, c)
		c.QueueSize = 64
	}
	inWorldOf(t, []wiring{small}, func(w *world) {
		x.hang.Store(true)
		const reports = 2000 // more than the queue holds
		begin := time.Now()
		for n := range reports {
			w.reports(0, telematics.Report{
				At: begin.Add(time.Duration(n) * time.Millisecond), Values: map[telematics.Field]any{telematics.MileageKm: float64(n)},
			})
			time.Sleep(10 * time.Millisecond) // within the allowance of a unit
		}
		x.hang.Store(false)
		time.Sleep(20 * time.Second)
		dropped, published := metric(t, w.brokers[0], droppedEvents...), metric(t, w.brokers[0], "motorpool_events_published_total")
		if metric(t, w.brokers[0], droppedEvents[0]) == 0 || dropped+published != reports {
			t.Errorf("%d dropped and %d published, want some dropped by the full queue, and %d in sum", dropped, published, reports)
		}
		got := w.publishedOf(car)
		if !slices.Contains(got, "reset") {
			t.Error("no reset was published")
		}
		last := fmt.Sprintf("telemetry.mileage_km=%d", reports-1)
		if end := got[len(got)-1]; end != "reset" && end != last {
			t.Errorf("the last event published is %s, want a reset or the newest report", end)
		}
	})
}

func TestEvents_HangingLogDelaysTheStopByAtMostItsTimeLimit(t *testing.T) {
	x := &tampering{}
	inWorldOf(t, between(x), func(w *world) {
		x.hang.Store(true)
		begin := time.Now()
		for n := range 3000 {
			w.reports(0, telematics.Report{
				At: begin.Add(time.Duration(n) * time.Millisecond), Values: map[telematics.Field]any{telematics.MileageKm: float64(n)},
			})
			time.Sleep(10 * time.Millisecond) // within the allowance of a unit
		}
		end := time.Now()
		w.stops[0]()
		if took := time.Since(end); took > 10*time.Second {
			t.Errorf("the stop took %v, want at most 10 s", took)
		}
	})
}
