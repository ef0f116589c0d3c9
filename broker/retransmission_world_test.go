package broker_test

import (
	"slices"
	"testing"
	"time"

	"motorpool/telematics"
)

// firstGap sends a command that is not answered, and returns the time between the first two
// publications.
func (w *world) firstGap(budget time.Duration) time.Duration {
	w.Helper()
	w.mqtt.car = nil
	before := len(w.mqtt.published())
	order := w.order(telematics.Lock)
	order.Budget = budget
	if _, err := w.brokers[0].Send(w.Context(), &order); err == nil {
		w.Fatal("a command without an answer succeeded")
	}
	published := w.mqtt.published()[before:]
	if len(published) < 3 {
		w.Fatalf("published %d times, want two repetitions", len(published))
	}
	return published[1].at.Sub(published[0].at)
}

// observes sends commands that are answered after a delay, each with a number of received answers
// before the final one.
func (w *world) observes(commands int, after time.Duration, received int) {
	w.Helper()
	w.mqtt.car = func(p publication) {
		time.Sleep(after)
		for range received {
			w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Received, At: time.Now()})
			w.answer(0, "358240051111128", telematics.Answer{Command: p.claims.Command, State: telematics.Received, At: time.Now()})
		}
		w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
	}
	for range commands {
		order := w.order(telematics.Lock)
		order.Budget = 30 * time.Second
		if _, err := w.brokers[0].Send(w.Context(), &order); err != nil {
			w.Fatal(err)
		}
	}
	w.mqtt.cars.Wait()
}

func about(d, want time.Duration) bool { return d >= want*8/10 && d <= want*12/10 }

func TestRetransmission_TimesAreRecordedWithTheResult(t *testing.T) {
	for name, answer := range map[string]func(*world){
		"no answer":                    func(*world) {},
		"answered to this instance":    func(w *world) { w.answers(0, 9*time.Second, telematics.Succeeded) },
		"answered to another instance": func(w *world) { w.answers(1, 9*time.Second, telematics.Succeeded) },
		"received by another instance": func(w *world) { w.answers(1, 3*time.Second, telematics.Received) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				answer(w)
				c, _ := w.send(telematics.Lock)
				time.Sleep(time.Second) // progress that the other instance does not have is stored
				var left []time.Time
				for _, p := range w.mqtt.published() {
					left = append(left, p.at)
				}
				for _, c := range []telematics.Command{c, w.record(c.ID)} {
					if got := c.Publications(); len(left) < 2 || len(got) != c.Attempts || !slices.EqualFunc(got, left, time.Time.Equal) {
						t.Errorf("published at %v, recorded %v with %d attempts; want the same times", left, got, c.Attempts)
					}
				}
			})
		})
	}
}

func TestRetransmission_IsLaterWhereRoundTripsAreSlow(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		if first := w.firstGap(30 * time.Second); !about(first, 2*time.Second) {
			t.Errorf("retransmitted after %v before any measurement, want 2 s ± 20 %%", first)
		}
		w.observes(100, 4*time.Second, 0)
		if first := w.firstGap(30 * time.Second); !about(first, 8*time.Second) {
			t.Errorf("retransmitted after %v where round trips take 4 s, want 8 s ± 20 %%", first)
		}
		if first := w.firstGap(10 * time.Second); !about(first, 2*time.Second) {
			t.Errorf("retransmitted after %v with a budget of 10 s, want 2 s ± 20 %%", first)
		}
		w.observes(100, time.Second, 0)
		if first := w.firstGap(30 * time.Second); !about(first, 2*time.Second) {
			t.Errorf("retransmitted after %v where round trips take a second, want 2 s ± 20 %%", first)
		}
	})
}

// The first answer of a command is measured, and only once, however often any unit repeats it and
// whatever answers follow.
func TestRoundTrip_OnlyTheFirstAnswerOfACommandIsMeasured(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.observes(14, 4*time.Second, 10) // 1.02^14 is 1.32
		if first := w.firstGap(30 * time.Second); first > 2*1320*time.Millisecond*12/10 {
			t.Errorf("retransmitted after %v: more than 14 round trips were measured", first)
		}
	})
}
