package simulator

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestCar_KeysAreAddedAndRemovedWhileItRuns(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		old := r.key.Keyring()
		next := newKey(t)
		r.key = next
		final := func() telematics.Answer {
			r.wait(time.Second)
			answers := r.radio.link().answers(r.T)
			return answers[len(answers)-1]
		}
		r.send(telematics.Lock, 10*time.Second)
		if a := final(); a.State != telematics.Rejected || a.Reason != telematics.BadSignature {
			t.Fatalf("with an unknown key: %+v, want bad_signature", a)
		}
		r.car.SetKeyring(next.Keyring())
		r.send(telematics.Lock, 10*time.Second)
		if a := final(); a.State != telematics.Succeeded {
			t.Errorf("with an added key: %+v, want succeeded", a)
		}
		r.car.Restart()
		r.wait(5 * time.Second)
		r.send(telematics.Unlock, 10*time.Second)
		if a := final(); a.State != telematics.Succeeded {
			t.Errorf("after a restart: %+v, want succeeded with the added key", a)
		}
		r.car.SetKeyring(old)
		r.send(telematics.Lock, 10*time.Second)
		if a := final(); a.Reason != telematics.BadSignature {
			t.Errorf("with a removed key: %+v, want bad_signature", a)
		}
	})
}

// [PRE-4]
func TestCar_PresenceNamesItsKeys(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		said := func() []string {
			presences := r.radio.link().presences(t)
			last := presences[len(presences)-1]
			if last.Status != telematics.Online || last.Session != presences[0].Session {
				t.Errorf("presence %+v, want online in the same session", last)
			}
			return last.Keys
		}
		first, next := r.key, newKey(t)
		if got := said(); !slices.Equal(got, []string{first.ID}) {
			t.Errorf("the keys at the connect are %q, want %q", got, first.ID)
		}
		both := first.Keyring()
		maps.Copy(both, next.Keyring())
		r.car.SetKeyring(both)
		r.wait(time.Second)
		if got := said(); len(got) != 2 || !slices.Contains(got, next.ID) {
			t.Errorf("with another key: %q, want both", got)
		}
		r.car.SetKeyring(nil)
		r.wait(time.Second)
		if got := said(); got == nil || len(got) != 0 {
			t.Errorf("without keys: %#v, want an empty list", got)
		}
	})
}

func TestFleet_IsProvisionedWhileItStartsAndAfterItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := NewFleet(
			FleetConfig{Stagger: time.Minute}, Config{Radio: &fakeRadio{}}, Config{Radio: &fakeRadio{}},
			Config{Radio: &fakeRadio{}},
		)
		ring := newKey(t).Keyring()
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() { fleet.SetKeyring(ring) })
		}
		assert.NoError(t, fleet.Run(ctx))
		group.Wait()
		for i, c := range fleet.Cars()[:2] { // the third car never ran
			if len(c.unit.keys) != 1 {
				t.Errorf("car %d has the keys %v, want one", i, c.unit.keys)
			}
		}
		fleet.SetKeyring(nil)
	})
}
