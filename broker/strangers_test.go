package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
)

const stranger = telematics.Unit("stranger")

// wantStranger waits for the next time that strangers are written down.
func (w *world) wantStranger(want telematics.UnknownUnit, notes int) {
	w.Helper()
	time.Sleep(6 * time.Second)
	synctest.Wait()
	got, n := w.Strangers()
	if n != notes || len(got) != 1 || got[want.Unit] != want {
		w.Errorf("noted %d times: %+v; want %d times: %+v", n, got, notes, want)
	}
}

func TestANoisyStrangerIsWrittenDownOnceInAWhile(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		first := time.Now().UTC()
		var last time.Time
		for range 400 { // for four seconds
			last = time.Now().UTC()
			w.brokers[0].Report(brokertest.Said(stranger, []byte(`{}`), false))
			time.Sleep(10 * time.Millisecond)
		}
		w.wantStranger(telematics.UnknownUnit{Unit: stranger, FirstSeen: first, LastSeen: last, Messages: 400}, 1)
		if n := metric(t, w.brokers[0], "motorpool_unknown_unit_messages_total"); n != 400 {
			w.Errorf("units_unknown is %d", n)
		}
		w.brokers[0].Answer(brokertest.Said(stranger, telematics.EncodeAnswer(telematics.Answer{State: telematics.Received, At: time.Now()}), false))
		w.brokers[0].Presence(brokertest.Said(stranger, []byte(`{"status":"online","session":"a"}`), false))
		last = time.Now().UTC()
		w.wantStranger(telematics.UnknownUnit{Unit: stranger, FirstSeen: first, LastSeen: last, Messages: 402}, 2)
	})
}

func TestWhatTheMQTTBrokerSaysOfAStrangerIsNotItsVoice(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.brokers[0].Presence(brokertest.Said(stranger, []byte(`{"status":"online","session":"a"}`), true))
		w.brokers[0].Presence(brokertest.Said(stranger, []byte(`{"status":"offline","session":"a"}`), false))
		time.Sleep(11 * time.Second)
		if got, n := w.Strangers(); len(got) != 0 || n != 0 {
			w.Errorf("noted %d times: %+v", n, got)
		}
		if n := metric(t, w.brokers[0], "motorpool_unknown_unit_messages_total"); n != 2 {
			w.Errorf("units_unknown is %d", n)
		}
	})
}

func TestStrangersThatCouldNotBeWrittenDownAreKeptForTheNextTime(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		at := time.Now().UTC()
		w.Break(errors.New("away"), "NoteStrangers")
		w.brokers[0].Report(brokertest.Said(stranger, []byte(`{}`), false))
		time.Sleep(6 * time.Second)
		w.brokers[0].Report(brokertest.Said(stranger, []byte(`{}`), false))
		last := time.Now().UTC()
		w.Break(nil, "NoteStrangers")
		w.wantStranger(telematics.UnknownUnit{Unit: stranger, FirstSeen: at, LastSeen: last, Messages: 2}, 1)
	})
}

func TestStrangersAreWrittenDownBeforeTheEnd(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		at := time.Now().UTC()
		w.brokers[0].Report(brokertest.Said(stranger, []byte(`{}`), false))
		synctest.Wait()
		w.stops[0]()
		if got, _ := w.Strangers(); got[stranger] != (telematics.UnknownUnit{Unit: stranger, FirstSeen: at, LastSeen: at, Messages: 1}) {
			w.Errorf("after the end: %+v", got)
		}
	})
}

func TestOnlySoManyStrangersAreKept(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for n := range telematics.MaxUnknownUnits + 5 {
			w.brokers[0].Report(brokertest.Said(telematics.Unit(fmt.Sprintf("s-%d", n)), []byte(`{}`), false))
			synctest.Wait()
		}
		time.Sleep(6 * time.Second)
		if got, n := w.Strangers(); len(got) != telematics.MaxUnknownUnits || n != 1 {
			w.Errorf("%d strangers, noted %d times", len(got), n)
		}
		if n := metric(t, w.brokers[0], `motorpool_dropped_total{kind="unknown_unit", reason="queue_full"}`); n != 5 {
			w.Errorf("units_unknown_dropped is %d", n)
		}
	})
}
