package brokertest

import (
	"slices"
	"testing"
	"time"

	"motorpool/broker/ingest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// ContactRecord is one store of contacts, as two instances of Motorpool use it.
type ContactRecord struct {
	Here, There interface {
		Observer
		ingest.Contacts
	}
	Vehicle func() (telematics.VehicleID, telematics.Unit) // adds a vehicle with its unit
}

// ContactsContract runs the contract of stores of contacts.
func ContactsContract(t *testing.T, open func(*testing.T) ContactRecord) {
	for name, run := range map[string]func(*testing.T, ContactRecord){
		"ChangeOfConnectivityIsPublishedOnce": changePublishedOnce,
		"SilenceIsPublishedOnce":              silencePublishedOnce,
		"UnitWithoutMessagesIsNotPublished":   noMessages,
		"OldRetainedPresenceIsNotPublished":   oldPresence,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// presences returns the changes of one vehicle's connectivity.
func presences(id telematics.VehicleID, changes []telematics.Change) []telematics.PresenceStatus {
	var published []telematics.PresenceStatus
	for _, c := range changes {
		if c.Vehicle == id && c.Presence != "" {
			published = append(published, c.Presence)
		}
	}
	return published
}

func says(unit telematics.Unit, status telematics.PresenceStatus, at time.Time) delivery.Observation {
	return delivery.Observation{Unit: unit, At: at, Presence: &telematics.Presence{Status: status, Session: "s", At: at}}
}

func changePublishedOnce(t *testing.T, r ContactRecord) {
	id, unit := r.Vehicle()
	now := time.Now()
	var changes []telematics.Change
	for _, step := range []struct {
		name string
		by   Observer
		seen []delivery.Observation
		want []telematics.PresenceStatus
	}{
		{"online", r.Here, []delivery.Observation{says(unit, telematics.Online, now)}, []telematics.PresenceStatus{telematics.Online}},
		{"online again, through the other instance", r.There, []delivery.Observation{says(unit, telematics.Online, now)}, nil},
		{"a sign of life", r.There, []delivery.Observation{{Unit: unit, At: now}}, nil},
		{
			"standby", r.There, []delivery.Observation{says(unit, telematics.Standby, now.Add(time.Millisecond))},
			[]telematics.PresenceStatus{telematics.Standby},
		},
		{
			"the last will", r.Here, []delivery.Observation{says(unit, telematics.Offline, now.Add(2*time.Millisecond))},
			[]telematics.PresenceStatus{telematics.Offline},
		},
		{
			"the last will again, through the other instance", r.There,
			[]delivery.Observation{says(unit, telematics.Offline, now.Add(3*time.Millisecond))}, nil,
		},
		{
			"a sign of life after the last will", r.There, []delivery.Observation{{Unit: unit, At: now.Add(4 * time.Millisecond)}},
			[]telematics.PresenceStatus{telematics.Online},
		},
		{"standby and online again, in one batch", r.Here, []delivery.Observation{
			says(unit, telematics.Standby, now.Add(5*time.Millisecond)), says(unit, telematics.Online, now.Add(6*time.Millisecond))}, nil},
	} {
		changes = observe(t, step.by, step.seen...)
		Eventually(t, timeout, step.name, func() bool { // Aged may return a change a moment later
			changes = append(changes, aged(t, r.Here)...)
			changes = append(changes, aged(t, r.There)...)
			return len(presences(id, changes)) >= len(step.want)
		})
		assert.EqualSlices(t, presences(id, changes), step.want, "%s: published", step.name)
	}
}

func aged(t *testing.T, contacts ingest.Contacts) []telematics.Change {
	t.Helper()
	changes, err := contacts.Aged(t.Context())
	require.NoError(t, err, "Aged")
	return changes
}

func silencePublishedOnce(t *testing.T, r ContactRecord) {
	id, unit := r.Vehicle()
	seen := time.Now().Add(2*time.Second - telematics.OnlineFor) // 2 s later, it is absent
	if got := presences(id, observe(t, r.Here, says(unit, telematics.Online, seen))); !slices.Equal(got,
		[]telematics.PresenceStatus{telematics.Online}) {
		t.Fatalf("published %v", got)
	}
	var changes []telematics.Change
	Eventually(t, timeout, "silence is published", func() bool {
		changes = append(changes, aged(t, r.There)...)
		changes = append(changes, aged(t, r.Here)...)
		return len(presences(id, changes)) > 0
	})
	changes = append(changes, aged(t, r.There)...)
	assert.EqualSlices(t, presences(id, changes), []telematics.PresenceStatus{telematics.Absent}, "published")
	for _, c := range changes {
		if c.Vehicle == id && (c.Agency != 1 || c.LastSeen.Sub(seen).Abs() > time.Millisecond) {
			t.Errorf("published %+v", c)
		}
	}
	if got := presences(id, observe(t, r.There, says(unit, telematics.Online, time.Now()))); !slices.Equal(got,
		[]telematics.PresenceStatus{telematics.Online}) {
		t.Errorf("online again: published %v", got)
	}
}

func noMessages(t *testing.T, r ContactRecord) {
	id, _ := r.Vehicle()
	if got := presences(id, aged(t, r.Here)); got != nil {
		t.Errorf("published %v", got)
	}
}

func oldPresence(t *testing.T, r ContactRecord) {
	id, unit := r.Vehicle()
	old := says(unit, telematics.Online, time.Now().Add(-time.Hour))
	old.Retained, old.At = true, time.Now()
	if got := presences(id, observe(t, r.Here, old)); got != nil {
		t.Errorf("a retained message published %v", got)
	}
	if got := presences(id, observe(t, r.Here, says(unit, telematics.Online, time.Now()))); !slices.Equal(got,
		[]telematics.PresenceStatus{telematics.Online}) {
		t.Errorf("published %v", got)
	}
}
