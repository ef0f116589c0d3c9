package store

import (
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestForgottenContactsAreToldAsUnknown(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Presence: &telematics.Presence{Status: telematics.Online, At: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	if err := p.ForgetContacts(t.Context()); err != nil {
		t.Fatal(err)
	}
	aged, err := p.Aged(t.Context())
	if err != nil || len(aged) != 1 || aged[0].Vehicle != id || aged[0].Presence != telematics.Absent || !aged[0].LastSeen.IsZero() {
		t.Errorf("told %+v, %v", aged, err)
	}
}

// What is told and what a list finds follow from one expression, but a contact is judged by
// telematics.Contact.At where it is observed: the two must not contradict each other.
func TestWhatObservingToldIsNeverTakenBackAtOnce(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	now := time.Now()
	for _, age := range []time.Duration{0, time.Minute, telematics.OnlineFor - 2*time.Minute, telematics.OnlineFor + time.Second, time.Hour} {
		for _, status := range []telematics.PresenceStatus{telematics.Online, telematics.Standby, telematics.Offline} {
			for _, retained := range []bool{false, true} {
				for _, heard := range []bool{false, true} {
					_, unit := add()
					at := now.Add(-age)
					seen := []delivery.Observation{{Unit: unit, At: at, Retained: retained, Presence: &telematics.Presence{Status: status, Session: "s", At: at}}}
					if heard {
						seen = append(seen, delivery.Observation{Unit: unit, At: at.Add(time.Second)})
					}
					if _, err := p.Observe(t.Context(), seen); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if aged, err := p.Aged(t.Context()); err != nil || len(aged) > 0 {
		t.Errorf("taken back: %+v, %v", aged, err)
	}
}
