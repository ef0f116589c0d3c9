package broker_test

import (
	"errors"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// temporaryOutage is the error of a server that is unavailable for a time.
type temporaryOutage struct{ error }

func (temporaryOutage) Unavailable() bool { return true }

// [PRE-1] If the last will were dropped, the unit would count as online for ten minutes, and each
// order would wait for it.
func TestPresence_LastWillCountsWhereTheUnitsClockWentBack(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		says := func(status telematics.PresenceStatus, session string, at time.Time) {
			w.brokers[0].Presence(brokertest.Said(unit, v1.EncodePresence(telematics.Presence{
				Status: status, Session: session, At: at, Actions: []telematics.Action{telematics.Lock}}), false))
			time.Sleep(time.Second)
		}
		says(telematics.Online, "before", time.Now())
		says(telematics.Offline, "before", time.Time{})
		says(telematics.Online, "after", time.Now().Add(-time.Minute))
		_, err := w.send(telematics.AttentionSignal) // which the unit has not declared
		w.wantCode(err, telematics.CommandNotSupported)
		says(telematics.Offline, "after", time.Time{})
		time.Sleep(telematics.UnreachableAfter)
		_, err = w.send(telematics.Lock)
		w.wantCode(err, telematics.VehicleOffline)
	})
}

// [PRE-1] A last will counts only for the recorded session: if the beginning of a session were not
// stored, its end would be dropped, too.
func TestPresence_StoredInItsOrderAfterAnOutageOfTheRecord(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		says := func(status telematics.PresenceStatus, session string) {
			w.brokers[0].Presence(brokertest.Said(unit, v1.EncodePresence(telematics.Presence{Status: status, Session: session, At: time.Now()}), false))
			time.Sleep(time.Second)
		}
		says(telematics.Online, "one")
		w.Break(temporaryOutage{errors.New("connection refused")}, "Observe")
		says(telematics.Online, "two")
		says(telematics.Offline, "two")
		time.Sleep(10 * time.Second)
		w.Break(nil, "Observe")
		time.Sleep(5 * time.Second)
		twin, err := w.Twin(t.Context(), car)
		if err != nil {
			t.Fatal(err)
		}
		if c := twin.Contact; c.Status != telematics.Offline || c.Session != "two" {
			t.Errorf("the contact is %s in session %q, want offline in two", c.Status, c.Session)
		}
		if n := metric(t, w.brokers[0], `motorpool_dropped_total{kind="observation", reason="not_stored"}`); n != 0 {
			t.Errorf("%d observations dropped, want none", n)
		}
	})
}
