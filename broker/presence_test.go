package broker_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
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
			w.says(0, telematics.Presence{Status: status, Session: session, At: at, Actions: []telematics.Action{telematics.Lock}})
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
			w.says(0, telematics.Presence{Status: status, Session: session, At: time.Now()})
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
		require.NoError(t, err)
		if c := twin.Contact; c.Status != telematics.Offline || c.Session != "two" {
			t.Errorf("the contact is %s in session %q, want offline in two", c.Status, c.Session)
		}
		if n := metric(t, w.brokers[0], `motorpool_dropped_total{kind="observation", reason="not_stored"}`); n != 0 {
			t.Errorf("%d observations dropped, want none", n)
		}
	})
}

// [PRE-1] An instance that lags behind another one receives, after it, a session of which no
// instance knows, and then what the other one has stored long before.
func TestPresence_OfThePastDoesNotEndTheLiveSession(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		says := func(instance int, p telematics.Presence) {
			w.says(instance, p)
			time.Sleep(time.Second)
		}
		past := telematics.Presence{Status: telematics.Online, Session: "past", At: time.Now()}
		time.Sleep(time.Second)
		live := telematics.Presence{Status: telematics.Online, Session: "live", At: time.Now(), Keys: []string{"old"}}
		says(0, live)
		says(1, past)
		live.At, live.Keys = time.Now(), []string{"new", "old"}
		says(0, live)
		w.wantContact(telematics.Online, "live", "new", "old")
		will := telematics.Presence{Status: telematics.Offline, Session: "live"}
		says(0, will)
		says(1, live)
		w.wantContact(telematics.Offline, "live", "new", "old")
		time.Sleep(telematics.UnreachableAfter)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.VehicleOffline)
	})
}

// [PRE-1] A unit whose clock goes back says that it has another key. Every instance has received
// its presence before, some of them only what the MQTT broker had retained.
func TestPresence_NewKeysCountWhereTheUnitsClockWentBack(t *testing.T) {
	for _, retained := range []bool{false, true} {
		inWorld(t, 2, func(w *world) {
			says := func(p telematics.Presence, retained bool) {
				for _, b := range w.brokers {
					b.Presence(brokertest.Said(unit, v1.EncodePresence(p), retained))
				}
				time.Sleep(time.Second)
			}
			online := telematics.Presence{Status: telematics.Online, Session: "s", At: time.Now(), Keys: []string{"old"}}
			says(online, retained)
			online.At, online.Keys = time.Now().Add(-58*time.Second), []string{"new", "old"}
			says(online, false)
			w.wantContact(telematics.Online, "s", "new", "old")
			online.At, online.Keys = time.Now().Add(-59*time.Second), []string{"new"}
			says(online, false)
			w.wantContact(telematics.Online, "s", "new")
		})
	}
}

func (w *world) wantContact(status telematics.PresenceStatus, session string, keys ...string) {
	w.Helper()
	twin, err := w.Twin(w.Context(), car)
	if c := twin.Contact; err != nil || c.Status != status || c.Session != session || !slices.Equal(c.Keys, keys) {
		w.Errorf("contact %+v, %v; want %s in session %s with the keys %v", c, err, status, session, keys)
	}
}
