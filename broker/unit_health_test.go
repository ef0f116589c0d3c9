package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

// storedHealth returns the health of the car's unit after the next flush.
func (w *world) storedHealth() telematics.UnitHealth {
	w.Helper()
	time.Sleep(11 * time.Second)
	synctest.Wait()
	return w.Units.Health(unit)
}

func (w *world) report(payload string) {
	w.brokers[0].Report(brokertest.Said(unit, []byte(payload), false))
}

func (w *world) wantRejects(want map[telematics.Reject]int) {
	w.Helper()
	got := map[telematics.Reject]int{}
	for why, tally := range w.storedHealth().Rejects {
		got[why] = tally.Count
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("rejects %v, want %v", got, want)
	}
}

func TestUnitHealth_CountsRejectedMessages(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		b := w.brokers[0]
		w.report(`{`)
		w.report(`{"at":"` + telematics.FormatTime(time.Now()) +
			`","telemetry":{"speed_kmh":"fast","gear":"Z","mileage_km":-1},"location":{"latitude":48}}`)
		w.report(`{}`)
		b.Report(brokertest.Said(unit, []byte(`{}`), true))
		b.Report(brokertest.Said(unit, []byte(strings.Repeat(" ", telematics.MaxMessage+1)), false))
		b.Presence(brokertest.Said(unit, []byte(`{"status":"here"}`), false))
		b.Answer(brokertest.Said(unit, []byte(`{}`), false))
		b.Answer(brokertest.Said(unit, []byte(strings.Repeat(" ", telematics.MaxMessage+1)), false))
		w.wantRejects(map[telematics.Reject]int{
			telematics.Malformed: 3, telematics.TooLarge: 2, telematics.KeptByBroker: 1,
			telematics.BadTime: 1, telematics.BadType: 1, telematics.BadWord: 1, telematics.BadRange: 1, telematics.BadOther: 1,
		})
	})
}

func TestUnitHealth_CountsMessagesOverAllowanceAndInAnotherProtocol(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		at := telematics.FormatTime(time.Now())
		for range 512 + 10 {
			w.report(`{"at":"` + at + `"}`)
		}
		m := brokertest.Said(van, []byte(`{"at":"`+at+`"}`), false)
		w.brokers[0].Report(m)
		w.wantRejects(map[telematics.Reject]int{telematics.OverAllowance: 10})
		assert.Equal(t, w.Units.Health(van).Rejects[telematics.ForeignProtocol].Count, 1, "messages in another protocol")
	})
}

func TestUnitHealth_CountsReconnects(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		for n := range 4 {
			for _, b := range w.brokers { // each instance gets all presence
				b.Presence(
					brokertest.Said(
						unit,
						fmt.Appendf(nil, `{"status":"online","session":"s-%d","at":"%s"}`, n, telematics.FormatTime(time.Now())),
						false,
					),
				)
			}
			time.Sleep(time.Minute)
		}
		// The recorded contact is online in a session without a name, so the first session counts,
		// too.
		assert.Equal(t, w.storedHealth().Reconnects.Count, 4, "reconnects")
	})
}

func TestUnitHealth_HasTheClockOffset(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		say := func(ahead time.Duration) {
			w.report(`{"at":"` + telematics.FormatTime(time.Now().Add(ahead)) + `"}`)
		}
		want := func(what string, ahead time.Duration) {
			t.Helper()
			if clock := w.storedHealth().Clock; clock == nil || (clock.Ahead-ahead).Abs() > time.Millisecond {
				t.Errorf("after %s: clock %+v, want %v ahead", what, clock, ahead)
			}
		}
		w.report(`{}`)
		if clock := w.storedHealth().Clock; clock != nil {
			t.Errorf("after a report without a time: clock %+v, want none", clock)
		}
		say(-2 * time.Second)
		want("a report that is 2 s old", -2*time.Second)
		say(90 * time.Second)
		want("a report 90 s ahead", 90*time.Second)
		say(3 * time.Hour) // too far ahead to be used as the report's time
		want("a report 3 h ahead", 3*time.Hour)
		redelivered := brokertest.Said(unit, []byte(`{"at":"`+telematics.FormatTime(time.Now().Add(5*time.Hour))+`"}`), false)
		redelivered.Redelivered = true
		w.brokers[0].Report(redelivered)
		want("a redelivered message", 3*time.Hour)
	})
}

func TestUnitHealth_StoredLaterWhereTheStoreFailed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.Break(errors.New("unavailable"), "StoreHealth")
		w.report(`{`)
		if got := w.storedHealth(); got.Unit != "" {
			t.Fatalf("stored %+v, want nothing", got)
		}
		w.report(`{`)
		w.Break(nil, "StoreHealth")
		w.wantRejects(map[telematics.Reject]int{telematics.Malformed: 2})
		w.report(`{`)
		synctest.Wait()
		time.Sleep(100 * time.Millisecond) // the queue waits to fill a batch
		w.stops[0]()
		assert.Equal(t, w.Units.Health(unit).Rejects[telematics.Malformed].Count, 3, "malformed after the stop")
	})
}
