package broker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// truckReported adds a truck with a contact at its lock, which has sent a report.
func (w *world) truckReported(payload string) {
	w.addTruck(withContact)
	w.truckSays(0, payload)
	synctest.Wait()
	time.Sleep(time.Minute)
}

// truckDoes makes the truck send payloads through an instance, a second apart, after each command.
func (w *world) truckDoes(instance int, payloads ...string) {
	w.mqtt.car = func(publication) {
		for _, payload := range payloads {
			time.Sleep(time.Second)
			w.truckSays(instance, payload)
		}
	}
}

func TestConfirm_AReportOfTheNewValueSettles(t *testing.T) {
	for _, says := range [][]string{{"answer taken", "locked yes"}, {"answer done", "locked yes"}, {"locked yes", "answer taken"}} {
		inWorld(t, 2, func(w *world) {
			w.truckReported("locked no")
			w.truckDoes(1, says...)
			c, err := w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, "")
			if c.State != telematics.Succeeded || c.Latency() > 3*time.Second || c.Assurance != (telematics.Promises{Confirmed: true}) {
				t.Errorf("payloads %q: %+v, want it succeeded and confirmed", says, c)
			}
			w.mqtt.cars.Wait()
			synctest.Wait()
			w.truckDoes(0, "answer taken", "locked no")
			_, err = w.sendToTruck(1, telematics.Unlock)
			w.wantCode(err, "")
		})
	}
}

// slowVehicles are vehicles whose state takes a second to read.
type slowVehicles struct{ broker.Vehicles }

func (s slowVehicles) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	time.Sleep(time.Second)
	return s.Vehicles.Twin(ctx, id)
}

// A report that comes while the vehicle is read at the deadline settles the command when it came,
// and not before.
func TestConfirm_IsNotDatedBeforeItsReport(t *testing.T) {
	inWorldOf(t, []wiring{func(_ *brokertest.Memory, config *broker.Config) {
		config.Vehicles = slowVehicles{config.Vehicles}
	}, nil}, func(w *world) {
		w.truckReported("locked no")
		var reported time.Time
		start := time.Now()
		w.mqtt.car = func(publication) {
			time.Sleep(time.Until(start.Add(10900 * time.Millisecond)))
			reported = time.Now()
			w.truckSays(1, "locked yes")
		}
		c, err := w.sendToTruck(0, telematics.Lock)
		w.mqtt.cars.Wait()
		w.wantCode(err, "")
		if c.State != telematics.Succeeded || c.Completed.Before(reported) {
			t.Errorf("%s at %v, want it succeeded after its report, %v", c.State, c.Completed, reported)
		}
	})
}

// Where a success cannot be written, its caller is not told of it: this process may die before it
// is, and no unit of such a dialect says it again.
func TestConfirm_WhatIsNotOnRecordIsNotAnsweredAsExecuted(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.truckReported("locked no")
		w.truckDoes(0, "answer taken", "locked yes")
		w.Break(errRefused, "Settle")
		got, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		if got.State != telematics.Unknown || err.Outcome != telematics.MayHave {
			t.Errorf("%+v, %+v; want it unknown", got, err)
		}
		w.Break(nil, "Settle")
		time.Sleep(time.Minute)
		w.mqtt.cars.Wait()
		if c := w.record(got.ID); c.State != telematics.Succeeded {
			t.Errorf("the record says %s, want succeeded once it can be written", c.State)
		}
	})
}

func TestConfirm_AnswerWithoutANewValueConfirmsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		before, detail string
		says           []string
	}{
		"nothing is reported":                          {"locked no", telematics.AcceptedByUnit, []string{"answer done"}},
		"the old value is reported":                    {"locked no", telematics.AcceptedByUnit, []string{"answer taken", "locked no"}},
		"the value was reported before":                {"locked yes", telematics.AcceptedByUnit, []string{"answer done", "locked yes"}},
		"the value was never reported":                 {"alarm tow", telematics.AcceptedByUnit, []string{"answer done", "locked yes"}},
		"the unit sends nothing":                       {"locked no", "", nil},
		"no answer, and the value was reported before": {"locked yes", "", []string{"locked yes"}},
	} {
		inWorld(t, 2, func(w *world) {
			w.truckReported(c.before)
			w.truckDoes(1, c.says...)
			got, err := w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, telematics.CommandTimeout)
			if got.State != telematics.Unknown || got.Detail != c.detail || err.Detail != c.detail || err.Outcome != telematics.MayHave {
				t.Errorf("%s: %+v, %+v; want unknown with detail %q", name, got, err, c.detail)
			}
		})
	}
}

func TestConfirm_AnotherInstanceSettlesFromTheStoredReport(t *testing.T) {
	for _, said := range []string{"locked yes", "locked no"} {
		inWorld(t, 2, func(w *world) {
			w.truckReported("locked no")
			order := w.order(telematics.Lock)
			order.Vehicle = truckID
			receipt, err := w.brokers[0].Start(w.Context(), &order)
			require.NoError(t, err)
			time.Sleep(time.Second) // its progress is stored
			w.truckSays(1, "answer taken")
			synctest.Wait()
			w.Break(errRefused, "Settle", "Updates") // as if the first instance had died
			w.truckSays(1, said)
			time.Sleep(20 * time.Second)
			w.stops[0]()
			w.stops = w.stops[1:]
			w.Break(nil, "Settle", "Updates")
			time.Sleep(5 * time.Second)
			want, detail := telematics.Succeeded, ""
			if said == "locked no" {
				want, detail = telematics.Unknown, telematics.AcceptedByUnit
			}
			if c := w.record(receipt.Command.ID); c.State != want || c.Detail != detail {
				t.Errorf("%q: %+v, want %s with detail %q", said, c, want, detail)
			}
		})
	}
}

func TestConfirm_ReportBeforeThePublicationConfirmsNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.truckReported("locked no")
		w.mqtt.fail(nil, errRefused)
		// Locked by hand.
		time.AfterFunc(100*time.Millisecond, func() { w.truckSays(0, "locked yes") })
		time.AfterFunc(200*time.Millisecond, func() { w.mqtt.fail(nil, nil) })
		w.truckDoes(0, "answer done", "locked yes")
		c, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		if c.State != telematics.Unknown || c.Detail != telematics.AcceptedByUnit {
			t.Errorf("%+v, want unknown, accepted by the unit", c)
		}
	})
}

// The unit dates in whole seconds: a report of the second in which a command is published may be
// older than the command.
func TestConfirm_ReportInWholeSecondsConfirmsOnlyFromTheNextSecond(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addTruck(withClock)
		w.truckSays(0, fmt.Sprintf("locked no %d", time.Now().Unix()))
		time.Sleep(time.Minute + 640*time.Millisecond)
		asked := time.Now()
		w.mqtt.car = func(publication) {
			if at := time.Now(); at.Sub(asked) != 260*time.Millisecond {
				t.Errorf("published after %v, want 260 ms: at the end of the second", at.Sub(asked))
			}
			// Locked by hand, just before the command.
			w.truckSays(0, fmt.Sprintf("locked yes %d", asked.Unix()))
			time.Sleep(3 * time.Second)
			if c, found, _ := w.Commands.AwaitingAnswer(t.Context(), truck); !found || c.State != telematics.Sent {
				t.Errorf("after a report of the same second: %+v, want sent", c)
			}
			w.truckSays(0, fmt.Sprintf("locked yes %d", time.Now().Unix()))
		}
		c, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, "")
		if c.State != telematics.Succeeded || c.Latency() < 3*time.Second {
			t.Errorf("%+v, want it to succeed with the second report", c)
		}
	})
}

func TestConfirm_CommandIsPublishedAtTheEndOfASecondWhileThereIsTime(t *testing.T) {
	for _, c := range []struct {
		at, refused time.Duration // offset within a second; for how long the MQTT client refuses it
		budget      time.Duration
		compared    time.Duration // how long a comparison of the clocks takes
		want        time.Duration // after the request
	}{
		{100 * time.Millisecond, 0, 10 * time.Second, 0, 800 * time.Millisecond},
		{100 * time.Millisecond, 0, 10 * time.Second, 120 * time.Millisecond, 800 * time.Millisecond},
		{950 * time.Millisecond, 0, 10 * time.Second, 0, 0},
		// Refused until 1.15 s, a moment into the next second: it waits for the end of that one.
		{950 * time.Millisecond, 200 * time.Millisecond, 10 * time.Second, 0, 950 * time.Millisecond},
		{950 * time.Millisecond, 1100 * time.Millisecond, 10 * time.Second, 0, 1950 * time.Millisecond},
		{950 * time.Millisecond, 2100 * time.Millisecond, 10 * time.Second, 0, 2200 * time.Millisecond},
		{100 * time.Millisecond, 0, time.Second, 0, 0},
	} {
		inWorldOf(t, []wiring{func(_ *brokertest.Memory, config *broker.Config) {
			config.Clock = slowClock{config.Clock, c.compared}
		}}, func(w *world) {
			w.addTruck(withClock)
			w.truckSays(0, fmt.Sprintf("locked no %d", time.Now().Unix()))
			time.Sleep(time.Minute + c.at)
			asked := time.Now()
			if c.refused > 0 {
				w.mqtt.fail(nil, errRefused)
				time.AfterFunc(c.refused, func() { w.mqtt.fail(nil, nil) })
			}
			order := w.order(telematics.Lock)
			order.Vehicle, order.Budget = truckID, c.budget
			receipt, err := w.brokers[0].Start(w.Context(), &order)
			require.NoError(t, err)
			time.Sleep(20 * time.Second) // until the caller has its result
			if got := w.record(receipt.Command.ID).SentAt.Sub(asked); got != c.want {
				t.Errorf("%+v: published after %v", c, got)
			}
		})
	}
}

// A machine that was suspended meanwhile, whose clocks tell nothing of it, sends no command late to
// a unit that checks no expiry.
func TestConfirm_CommandThatWaitedIsPublishedByTheTimeOfTheDatabase(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addTruck(withClock)
		w.truckSays(0, fmt.Sprintf("locked no %d", time.Now().Unix()))
		time.Sleep(time.Minute + 100*time.Millisecond)
		const before = 50 * time.Millisecond // it leaves
		time.AfterFunc(800*time.Millisecond-before, func() { w.SetClock(10 * time.Second) })
		order := w.order(telematics.Lock)
		order.Vehicle = truckID
		receipt, err := w.brokers[0].Start(w.Context(), &order)
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		if c := w.record(receipt.Command.ID); c.State != telematics.Expired || len(w.mqtt.published()) > 0 {
			t.Errorf("%s, and %d messages published; want it expired, and none", c.State, len(w.mqtt.published()))
		}
	})
}

func TestBestEffort_UnlockNeedsTheAgencysConsent(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addTruck(nil)
		w.truckAnswers(0, time.Second, "answer done")
		w.Change(truckID, func(twin *telematics.Twin) { twin.BestEffortUnlock = false })
		c, err := w.sendToTruck(0, telematics.Unlock)
		w.wantCode(err, telematics.BestEffortIsDenied)
		if err.Outcome != telematics.NotExecuted || c.ID != telematics.NoCommand || len(w.mqtt.published()) > 0 {
			t.Errorf("%+v, %+v; want it refused without a command", c, err)
		}
		w.wantEntries(telematics.BestEffortIsDenied)
		_, err = w.sendToTruck(0, telematics.Lock) // executed late, it does no harm
		w.wantCode(err, "")
		w.answers(0, time.Second, telematics.Succeeded)
		_, err = w.send(telematics.Unlock) // its unit checks the expiry
		w.wantCode(err, "")
		w.truckAnswers(0, time.Second, "answer done unlock")
		w.Change(truckID, func(twin *telematics.Twin) { twin.BestEffortUnlock = true })
		_, err = w.sendToTruck(0, telematics.Unlock)
		w.wantCode(err, "")
	})
}
