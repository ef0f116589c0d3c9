package brokertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// Observer is the part of ingest.Twins that merges observations.
type Observer interface {
	Observe(context.Context, []delivery.Observation) (delivery.Seen, error)
}

// TwinRecord is one store of twins, as two instances of Motorpool use it.
type TwinRecord struct {
	Here, There Observer
	Vehicle     func() (telematics.VehicleID, telematics.Unit) // adds a vehicle with its unit
	// Reads a vehicle, after all instances have flushed their observations.
	Twin func(telematics.VehicleID) telematics.Twin
	// Returns the changes since its last call that Observe has not returned. Nil: Observe returns
	// all.
	Published func() []telematics.Change
}

// TwinsContract runs the contract of stores of twins.
func TwinsContract(t *testing.T, open func(*testing.T) TwinRecord) {
	for name, run := range map[string]func(*testing.T, TwinRecord){
		"EveryFieldOfAReportIsStored":            everyFieldIsStored,
		"VehicleWithoutValuesHasNoSnapshot":      noReportNoSnapshot,
		"PresenceChangesTheContact":              presenceChangesContact,
		"ReconnectIsReturnedToOneInstance":       reconnectIsReturnedOnce,
		"PresenceOfAFormerSessionIsIgnored":      formerSessionIsIgnored,
		"PresenceOfThePastIsIgnored":             presenceOfThePastIsIgnored,
		"EmptyListOfActionsIsStored":             emptyActionsAreStored,
		"UnknownUnitsAreReturnedOnce":            unknownUnitsAreReturned,
		"OrderOfReportsDoesNotChangeTheSnapshot": orderDoesNotMatter,
		"RepeatedReportsDoNotChangeTheSnapshot":  deliveryDoesNotMatter,
		"OnlyNewValuesAreChanges":                onlyNewValuesAreChanges,
		"EveryAlarmIsAChange":                    eachAlarmIsAChange,
		"MessageInAnotherProtocolIsIgnored":      otherProtocolIsIgnored,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

const wholeReport = `{"at":"2026-01-02T10:00:00.250Z",
 "location":{"latitude":48.1371,"longitude":11.5754,"heading":270,"timestamp":"2026-01-02T09:59:58Z"},
 "telemetry":{"speed_kmh":48.5,"mileage_km":15230.4,"ignition":"on","gear":"D","parking_brake":"released",
  "fuel_level_percent":61,"battery_level_percent":80,"remaining_range_km":412.5,"charging_status":"disconnected",
  "onboard_voltage_v":12.6,"is_locked":false,"is_engine_running":true,"sunroof":"tilted","key_status":"in",
  "doors":{"front_left":"closed","front_right":"open","rear_left":"closed","rear_right":"closed","trunk":"closed"},
  "windows":{"front_left":"closed","front_right":"partially_open","rear_left":"open","rear_right":"closed"},
  "seatbelts":{"driver":"fastened","passenger":"unfastened"}},
 "diagnostics":{"dtcs":["P0420"],"service_due_in_km":-200,"oil_life_percent":61,"warning_lamps":["tire_failure"]},
 "connectivity":{"rsrp_dbm":-97,"firmware_version":"4.2.1"},
 "oem_data":{"seat":{"heated":true,"level":2.5},"list":[1,"zwei",null],"größe":"1e400"}}`

func wholeReportAt(t *testing.T) telematics.Report {
	t.Helper()
	report, dropped, err := v1.DecodeReport([]byte(wholeReport), instant.Add(time.Second))
	if err != nil || len(dropped) > 0 {
		t.Fatalf("DecodeReport: %v, %v", dropped, err)
	}
	return report
}

func observe(t *testing.T, twins Observer, observations ...delivery.Observation) []telematics.Change {
	t.Helper()
	seen, err := twins.Observe(t.Context(), observations)
	if err != nil || len(seen.Unknown) > 0 {
		t.Fatalf("Observe = %v, %v", seen.Unknown, err)
	}
	return seen.Changes
}

func wantSnapshot(t rapid.TB, got, want telematics.Snapshot) {
	t.Helper()
	assert.Equal(t, got.Len(), want.Len(), "fields")
	for field, reading := range want.All() {
		assert.DeepEqual(t, got.Of(field), reading, "%s", field)
	}
}

func speedReport(at time.Time, kmh any) *telematics.Report {
	return &telematics.Report{At: at, Values: map[telematics.Field]any{telematics.SpeedKmh: kmh}}
}

func everyFieldIsStored(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	report := wholeReportAt(t)
	observe(t, r.Here, delivery.Observation{Unit: unit, At: instant, Report: &report})
	twin := r.Twin(id)
	wantSnapshot(t, twin.Snapshot, telematics.Merge(nil, report))
	assert.DeepEqual(t, twin.Contact, (telematics.Contact{LastSeen: instant}), "contact")
}

func otherProtocolIsIgnored(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	foreign := delivery.Observation{Unit: unit, Protocol: "morse", At: instant, Report: speedReport(instant, 50.0)}
	seen, err := r.Here.Observe(t.Context(), []delivery.Observation{foreign, foreign})
	if err != nil || len(seen.Unknown) > 0 || len(seen.Changes) > 0 || !slices.Equal(seen.Foreign, []telematics.Unit{unit}) {
		t.Errorf("Observe = %+v, %v, want the foreign unit %s once", seen, err, unit)
	}
	if twin := r.Twin(id); twin.Snapshot != nil || !twin.Contact.LastSeen.IsZero() {
		t.Errorf("snapshot %v and contact %+v, want none", twin.Snapshot, twin.Contact)
	}
}

// The same alarm, sent again, is another alarm.
func eachAlarmIsAChange(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	alarm := telematics.Alarm{Kind: "towing", Text: "moved by 20 m"}
	o := delivery.Observation{Unit: unit, At: instant, Report: &telematics.Report{At: instant, Alarms: []telematics.Alarm{alarm}}}
	for range 2 {
		seen, err := r.Here.Observe(t.Context(), []delivery.Observation{o})
		var raised []telematics.Alarm
		for _, change := range seen.Changes {
			if change.Vehicle == id && change.Agency != 0 {
				raised = append(raised, change.Alarms...)
			}
		}
		if err != nil || !slices.Equal(raised, []telematics.Alarm{alarm}) {
			t.Errorf("Observe = %+v, %v, want the alarm of vehicle %d", seen, err, id)
		}
	}
}

// formerSessionIsIgnored: a unit's clock goes back with each session. Another instance observes
// messages of the former sessions late [PRE-1].
func formerSessionIsIgnored(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	presence := func(status telematics.PresenceStatus, session string, at time.Time) delivery.Observation {
		return delivery.Observation{Unit: unit, At: instant, Presence: &telematics.Presence{Status: status, Session: session, At: at}}
	}
	var sessions []delivery.Observation
	for i, session := range []string{"one", "two", "three"} {
		o := presence(telematics.Online, session, instant.Add(-time.Duration(i)*time.Minute).Truncate(time.Millisecond))
		if i > 0 {
			o.Presence.After = sessions[i-1].Presence.Mark(instant, false)
		}
		sessions = append(sessions, o)
	}
	observe(t, r.Here, sessions[:2]...)
	observe(t, r.Here, sessions[2])
	observe(t, r.There, presence(telematics.Online, "one", instant), presence(telematics.Standby, "two", instant))
	if c := r.Twin(id).Contact; c.Session != "three" || c.Status != telematics.Online || !slices.Equal(c.Former, []string{"two", "one"}) {
		t.Errorf("contact %+v, want session three, online, and the former sessions two and one", c)
	}
}

// presenceOfThePastIsIgnored: an instance that lags behind observes a session of which no other one
// knows. The live one goes on: its new keys count, and so does its last will [PRE-1].
func presenceOfThePastIsIgnored(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	at := instant.Truncate(time.Millisecond)
	presence := func(status telematics.PresenceStatus, session string, seconds int, keys ...string) delivery.Observation {
		o := delivery.Observation{
			Unit: unit, At: at.Add(time.Duration(seconds) * time.Second),
			Presence: &telematics.Presence{Status: status, Session: session, Keys: keys},
		}
		if status != telematics.Offline {
			o.Presence.At = o.At
		}
		return o
	}
	late := presence(telematics.Online, "past", -10, "old")
	late.At = at.Add(time.Second)
	observe(t, r.Here, presence(telematics.Online, "live", 0, "old"))
	observe(t, r.There, late)
	observe(t, r.Here, presence(telematics.Online, "live", 2, "new", "old"))
	if c := r.Twin(id).Contact; c.Session != "live" || !slices.Equal(c.Keys, []string{"new", "old"}) {
		t.Errorf("contact %+v, want the live session with its new keys", c)
	}
	observe(t, r.Here, presence(telematics.Offline, "live", 3))
	observe(t, r.There, presence(telematics.Online, "live", 2, "new", "old"))
	if c := r.Twin(id).Contact; c.Status != telematics.Offline {
		t.Errorf("contact %+v, want offline", c)
	}
}

func noReportNoSnapshot(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	observe(t, r.Here,
		delivery.Observation{Unit: unit, At: instant},
		delivery.Observation{Unit: unit, At: instant, Report: &telematics.Report{At: instant}})
	if snapshot := r.Twin(id).Snapshot; snapshot != nil {
		t.Errorf("snapshot %v, want none", snapshot)
	}
}

func presenceChangesContact(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	says := func(status telematics.PresenceStatus, session string, seconds int, retained bool) delivery.Observation {
		at := instant.Add(time.Duration(seconds) * time.Second)
		return delivery.Observation{Unit: unit, At: at.Add(time.Millisecond), Retained: retained, Presence: &telematics.Presence{
			Status: status, Session: session, At: at.Truncate(time.Millisecond), Firmware: "4.2.1",
			Actions: []telematics.Action{telematics.Lock, telematics.Unlock},
		}}
	}
	var want telematics.Contact
	for _, o := range []delivery.Observation{
		says(telematics.Online, "one", 0, true),
		says(telematics.Online, "two", 10, false),
		says(telematics.Offline, "one", 11, false), // the last will of an older connection
		says(telematics.Standby, "one", 5, false),  // older than the stored presence
		says(telematics.Standby, "two", 20, false),
		{Unit: unit, At: instant.Add(21 * time.Second)},
		says(telematics.Offline, "two", 22, false),
	} {
		observe(t, r.Here, o)
		want = o.Contact(want)
		assert.DeepEqual(t, r.Twin(id).Contact, want, "after %+v", o.Presence)
	}
}

func reconnectIsReturnedOnce(t *testing.T, r TwinRecord) {
	_, unit := r.Vehicle()
	says := func(status telematics.PresenceStatus, session string, seconds int) delivery.Observation {
		at := instant.Add(time.Duration(seconds) * time.Second).Truncate(time.Millisecond)
		return delivery.Observation{Unit: unit, At: at, Presence: &telematics.Presence{Status: status, Session: session, At: at}}
	}
	var reconnected []telematics.Unit
	for _, o := range []delivery.Observation{
		says(telematics.Online, "one", 0), says(telematics.Offline, "one", 5), says(telematics.Online, "two", 10),
		says(telematics.Online, "three", 20),
	} {
		for _, instance := range []Observer{r.Here, r.There} {
			seen, err := instance.Observe(t.Context(), []delivery.Observation{o})
			require.NoError(t, err)
			reconnected = append(reconnected, seen.Reconnected...)
		}
	}
	assert.EqualSlices(t, reconnected, []telematics.Unit{unit, unit}, "reconnected")
}

func emptyActionsAreStored(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	presence := telematics.Presence{Status: telematics.Online, Session: "s", At: instant}
	observe(t, r.Here, delivery.Observation{Unit: unit, At: instant, Presence: &presence})
	if actions := r.Twin(id).Contact.Actions; actions != nil {
		t.Errorf("actions %v, want nil: the unit sent no list", actions)
	}
	presence.Actions = []telematics.Action{}
	observe(t, r.Here, delivery.Observation{Unit: unit, At: instant, Presence: &presence})
	if actions := r.Twin(id).Contact.Actions; actions == nil || len(actions) > 0 {
		t.Errorf("actions %#v, want the empty list that the unit sent", actions)
	}
}

func unknownUnitsAreReturned(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	at := instant.Truncate(time.Millisecond)
	seen, err := r.Here.Observe(t.Context(), []delivery.Observation{
		{Unit: "unknown-1", At: instant},
		{Unit: unit, At: instant, Report: speedReport(at, 50.0)},
		{Unit: "unknown-2", At: instant, Report: speedReport(at, 1.0)},
		{Unit: "unknown-1", At: instant},
	})
	if want := []telematics.Unit{"unknown-1", "unknown-2"}; err != nil || !slices.Equal(seen.Unknown, want) {
		t.Errorf("Observe = %v, %v; want %v", seen.Unknown, err, want)
	}
	wantSnapshot(t, r.Twin(id).Snapshot, telematics.Snapshot{telematics.SpeedKmh: {Value: 50.0, At: at}})
	if seen, err := r.Here.Observe(t.Context(), nil); err != nil || len(seen.Unknown)+len(seen.Changes) > 0 {
		t.Errorf("Observe of nothing = %+v, %v", seen, err)
	}
}

func onlyNewValuesAreChanges(t *testing.T, r TwinRecord) {
	id, unit := r.Vehicle()
	at := instant.Truncate(time.Millisecond)
	if r.Published != nil {
		r.Published() // earlier changes
	}
	report := func(twins Observer, after time.Duration, kmh any) []telematics.Change {
		changes := observe(t, twins, delivery.Observation{Unit: unit, At: instant.Add(after), Report: speedReport(at.Add(after), kmh)})
		if r.Published != nil {
			changes = append(changes, r.Published()...)
		}
		return changes
	}
	for _, step := range []struct {
		name string
		got  []telematics.Change
		want any // the value of the one change; nil where there is none
	}{
		{"the first report", report(r.Here, 0, 50.0), 50.0},
		{"the same again", report(r.There, 0, 50.0), nil},
		{"the same value, later", report(r.There, time.Second, 50.0), nil},
		{"another value, through the other instance", report(r.There, 2*time.Second, 60.0), 60.0},
		{"an older value, through the first instance", report(r.Here, time.Second, 55.0), nil},
		{"the first value again, through the first instance", report(r.Here, 3*time.Second, 50.0), 50.0},
	} {
		switch {
		case step.want == nil && len(step.got) == 0:
		case step.want == nil || len(step.got) != 1 || step.got[0].Vehicle != id || step.got[0].Agency == 0 ||
			step.got[0].Powertrain == "" ||
			step.got[0].Fields.Len() != 1 || step.got[0].Fields.Of(telematics.SpeedKmh).Value != step.want:
			t.Errorf("%s: changes %+v, want %v", step.name, step.got, step.want)
		}
	}
}

// orderDoesNotMatter: reports of a few vehicles reach two instances in batches of any order, some
// of them twice, some at the same vehicle time.
func orderDoesNotMatter(t *testing.T, r TwinRecord) {
	fields := []telematics.Field{telematics.SpeedKmh, telematics.MileageKm, telematics.OnboardV}
	want := map[telematics.VehicleID]telematics.Snapshot{}
	var seen []delivery.Observation
	for range 8 {
		id, unit := r.Vehicle()
		for i := range 20 {
			report := telematics.Report{
				At:     instant.Truncate(time.Millisecond).Add(time.Duration(i/2) * time.Second),
				Values: map[telematics.Field]any{fields[i%len(fields)]: float64(rand.IntN(50))},
			}
			want[id] = telematics.Merge(want[id], report)
			seen = append(seen, delivery.Observation{Unit: unit, At: instant, Report: &report})
		}
	}
	race(4, r.Here, r.There, func(_ int, twins Observer) {
		mine := slices.Clone(seen)
		rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		for batch := range slices.Chunk(mine, 16) {
			if seen, err := twins.Observe(t.Context(), batch); err != nil || len(seen.Unknown) > 0 {
				t.Errorf("Observe = %v, %v", seen.Unknown, err)
			}
		}
	})
	for id, snapshot := range want {
		t.Run(fmt.Sprintf("vehicle %d", id), func(t *testing.T) { wantSnapshot(t, r.Twin(id).Snapshot, snapshot) })
	}
}
