package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
)

// fares returns how the car's unit fares, once that is stored.
func (w *world) fares() telematics.UnitHealth {
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
	for why, tally := range w.fares().Rejects {
		got[why] = tally.Count
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("rejects %v, want %v", got, want)
	}
}

func TestUnitHealth_CountsWhatIsRejected(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		b := w.brokers[0]
		w.report(`{`)
		w.report(`{"at":"` + telematics.FormatTime(time.Now()) + `","telemetry":{"speed_kmh":"fast","gear":"Z","mileage_km":-1},"location":{"latitude":48}}`)
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

func TestUnitHealth_CountsAFloodAndAForeignProtocol(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		at := telematics.FormatTime(time.Now())
		for range 512 + 10 {
			w.report(`{"at":"` + at + `"}`)
		}
		m := brokertest.Said(van, []byte(`{"at":"`+at+`"}`), false)
		w.brokers[0].Report(m)
		w.wantRejects(map[telematics.Reject]int{telematics.OverAllowance: 10})
		if got := w.Units.Health(van).Rejects[telematics.ForeignProtocol].Count; got != 1 {
			t.Errorf("%d messages in another protocol", got)
		}
	})
}

func TestUnitHealth_CountsReconnects(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		for n := range 4 {
			for _, b := range w.brokers { // each hears all of presence
				b.Presence(brokertest.Said(unit, fmt.Appendf(nil, `{"status":"online","session":"s-%d","at":"%s"}`, n, telematics.FormatTime(time.Now())), false))
			}
			time.Sleep(time.Minute)
		}
		// The record begins online, in a session without a name.
		if got := w.fares().Reconnects.Count; got != 4 {
			t.Errorf("%d reconnects", got)
		}
	})
}

func TestUnitHealth_KnowsHowFarTheClockIsOff(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		say := func(ahead time.Duration) {
			w.report(`{"at":"` + telematics.FormatTime(time.Now().Add(ahead)) + `"}`)
		}
		want := func(what string, ahead time.Duration) {
			t.Helper()
			if clock := w.fares().Clock; clock == nil || (clock.Ahead-ahead).Abs() > time.Millisecond {
				t.Errorf("%s: clock %+v, want %v ahead", what, clock, ahead)
			}
		}
		w.report(`{}`)
		if clock := w.fares().Clock; clock != nil {
			t.Errorf("a report without a time says %+v", clock)
		}
		say(-2 * time.Second)
		want("a report", -2*time.Second)
		say(90 * time.Second)
		want("ahead", 90*time.Second)
		say(3 * time.Hour) // which is not taken as the report's time
		want("far ahead", 3*time.Hour)
		repeated := brokertest.Said(unit, []byte(`{"at":"`+telematics.FormatTime(time.Now().Add(5*time.Hour))+`"}`), false)
		repeated.Repeated = true
		w.brokers[0].Report(repeated)
		want("after a repetition", 3*time.Hour)
	})
}

func TestUnitHealth_StoredLaterWhereTheStoreFailed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.Break(errors.New("unavailable"), "StoreHealth")
		w.report(`{`)
		if got := w.fares(); got.Unit != "" {
			t.Fatalf("stored %+v", got)
		}
		w.report(`{`)
		w.Break(nil, "StoreHealth")
		w.wantRejects(map[telematics.Reject]int{telematics.Malformed: 2})
		w.report(`{`)
		synctest.Wait()
		time.Sleep(100 * time.Millisecond) // the queue lets others join
		w.stops[0]()
		if got := w.Units.Health(unit).Rejects[telematics.Malformed].Count; got != 3 {
			t.Errorf("%d after the end", got)
		}
	})
}
