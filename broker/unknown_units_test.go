package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

const unknownUnit = telematics.Unit("unknown")

// wantUnknownUnit waits for the next flush of unknown units.
func (w *world) wantUnknownUnit(want telematics.UnknownUnit, stored int) {
	w.Helper()
	time.Sleep(6 * time.Second)
	synctest.Wait()
	got, n := w.Units.UnknownUnits()
	if n != stored || len(got) != 1 || got[want.Unit] != want {
		w.Errorf("stored %d times: %+v; want %d times: %+v", n, got, stored, want)
	}
}

func TestUnknownUnits_AreStoredOncePerInterval(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		first := time.Now().UTC()
		var last time.Time
		for range 400 { // 4 s
			last = time.Now().UTC()
			w.brokers[0].Report(brokertest.Said(unknownUnit, []byte(`{}`), false))
			time.Sleep(10 * time.Millisecond)
		}
		w.wantUnknownUnit(telematics.UnknownUnit{Unit: unknownUnit, FirstSeen: first, LastSeen: last, Messages: 400}, 1)
		assert.Equal(w, metric(t, w.brokers[0], "motorpool_unknown_unit_messages_total"), 400, "unknown_unit_messages_total")
		w.brokers[0].Answer(
			brokertest.Said(unknownUnit, v1.EncodeAnswer(telematics.Answer{State: telematics.Received, At: time.Now()}), false),
		)
		w.brokers[0].Presence(brokertest.Said(unknownUnit, []byte(`{"status":"online","session":"a"}`), false))
		last = time.Now().UTC()
		w.wantUnknownUnit(telematics.UnknownUnit{Unit: unknownUnit, FirstSeen: first, LastSeen: last, Messages: 402}, 2)
	})
}

func TestUnknownUnits_PresenceFromTheMQTTBrokerDoesNotCount(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.brokers[0].Presence(brokertest.Said(unknownUnit, []byte(`{"status":"online","session":"a"}`), true))
		w.brokers[0].Presence(brokertest.Said(unknownUnit, []byte(`{"status":"offline","session":"a"}`), false))
		time.Sleep(11 * time.Second)
		if got, n := w.Units.UnknownUnits(); len(got) != 0 || n != 0 {
			w.Errorf("stored %d times: %+v; want nothing", n, got)
		}
		assert.Equal(w, metric(t, w.brokers[0], "motorpool_unknown_unit_messages_total"), 2, "unknown_unit_messages_total")
	})
}

func TestUnknownUnits_StoredLaterWhereTheStoreFailed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		at := time.Now().UTC()
		w.Break(errors.New("unavailable"), "StoreUnknownUnits")
		w.brokers[0].Report(brokertest.Said(unknownUnit, []byte(`{}`), false))
		time.Sleep(6 * time.Second)
		w.brokers[0].Report(brokertest.Said(unknownUnit, []byte(`{}`), false))
		last := time.Now().UTC()
		w.Break(nil, "StoreUnknownUnits")
		w.wantUnknownUnit(telematics.UnknownUnit{Unit: unknownUnit, FirstSeen: at, LastSeen: last, Messages: 2}, 1)
	})
}

func TestUnknownUnits_StoredBeforeTheInstanceStops(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		at := time.Now().UTC()
		w.brokers[0].Report(brokertest.Said(unknownUnit, []byte(`{}`), false))
		synctest.Wait()
		w.stops[0]()
		if got, _ := w.Units.UnknownUnits(); got[unknownUnit] != (telematics.UnknownUnit{
			Unit: unknownUnit, FirstSeen: at, LastSeen: at, Messages: 1,
		}) {
			w.Errorf("after the stop: %+v, want one message", got)
		}
	})
}

func TestUnknownUnits_NumberIsBounded(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for n := range telematics.MaxUnknownUnits + 5 {
			w.brokers[0].Report(brokertest.Said(telematics.Unit(fmt.Sprintf("s-%d", n)), []byte(`{}`), false))
			synctest.Wait()
		}
		time.Sleep(6 * time.Second)
		if got, n := w.Units.UnknownUnits(); len(got) != telematics.MaxUnknownUnits || n != 1 {
			w.Errorf("%d unknown units, stored %d times; want the maximum, once", len(got), n)
		}
		assert.Equal(w, metric(t, w.brokers[0], `motorpool_dropped_total{kind="unknown_unit", reason="queue_full"}`), 5, "dropped_total")
	})
}
