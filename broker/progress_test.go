package broker_test

import (
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// answersAt makes the car answer the only publication of a command, at times after it.
func (w *world) answersAt(from telematics.Unit, answers map[time.Duration]telematics.State) {
	w.mqtt.car = func(p publication) {
		begin := time.Now()
		var times []time.Duration
		for after := range answers {
			times = append(times, after)
		}
		slices.Sort(times)
		for _, after := range times {
			time.Sleep(time.Until(begin.Add(after)))
			w.answer(0, from, telematics.Answer{Command: p.claims.Command, State: answers[after], At: time.Now()})
		}
	}
}

// recorded returns the record of the command in flight.
func (w *world) recorded() telematics.Command {
	w.Helper()
	open := w.Pending.InFlight()
	if len(open) != 1 {
		w.Fatalf("%d commands are in flight, want 1", len(open))
	}
	return w.record(open[0].Command)
}

func TestProgress_IsStoredWithADelay(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		begin := time.Now()
		w.answersAt(unit, map[time.Duration]telematics.State{time.Second: telematics.Received, 3 * time.Second: telematics.Succeeded})
		for at, want := range map[time.Duration]telematics.State{
			200 * time.Millisecond: telematics.Accepted, 400 * time.Millisecond: telematics.Sent,
			1200 * time.Millisecond: telematics.Sent, 1400 * time.Millisecond: telematics.Received,
		} {
			time.AfterFunc(at, func() {
				assert.Equal(w, w.recorded().State, want, "after %v the record", at)
			})
		}
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if sent, received := c.SentAt.Sub(begin), c.ReceivedAt.Sub(begin); sent != 0 || received != time.Second {
			t.Errorf("sent after %v, received after %v; want 0 and 1 s", sent, received)
		}
		w.wantEvents("accepted", "sent", "received", "succeeded")
	})
}

func TestProgress_CommandAnsweredSoonIsStoredOnce(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		begin := time.Now()
		w.Break(errUnavailable, "StoreProgress") // no progress is to be stored
		w.answersAt(
			unit,
			map[time.Duration]telematics.State{100 * time.Millisecond: telematics.Received, 200 * time.Millisecond: telematics.Succeeded},
		)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		for _, c := range []telematics.Command{c, w.record(c.ID)} {
			if received := c.ReceivedAt.Sub(begin); received != 100*time.Millisecond || c.Attempts != 1 || c.State != telematics.Succeeded {
				t.Errorf("received after %v, %d attempts, %s; want 100 ms, 1, succeeded", received, c.Attempts, c.State)
			}
		}
		w.wantEvents("accepted", "sent", "received", "succeeded")
	})
}

func TestProgress_FailedStoreIsMadeUpByTheNext(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.Break(errUnavailable, "StoreProgress")
		time.AfterFunc(time.Second, func() { w.Break(nil, "StoreProgress") })
		// After the second publication.
		for at, want := range map[time.Duration]telematics.State{
			1900 * time.Millisecond: telematics.Accepted, 3 * time.Second: telematics.Sent,
		} {
			time.AfterFunc(at, func() {
				assert.Equal(w, w.recorded().State, want, "after %v the record", at)
			})
		}
		w.answers(0, 5*time.Second, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
	})
}

func TestProgress_EarlyReceivedAnswerIsStoredWithoutDelay(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answersAt(
			unit,
			map[time.Duration]telematics.State{240 * time.Millisecond: telematics.Received, time.Second: telematics.Succeeded},
		)
		time.AfterFunc(310*time.Millisecond, func() {
			if got := w.recorded(); got.State != telematics.Received || got.Attempts != 1 {
				w.Errorf("the record says %s, %d attempts; want received, 1", got.State, got.Attempts)
			}
		})
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
	})
}
