package twins

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestABadObservationDoesNotLoseTheOthers(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	report := telematics.Report{At: morning.Truncate(time.Millisecond), Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}
	var seen []delivery.Observation
	for range 3 {
		_, unit := add()
		seen = append(seen, delivery.Observation{Unit: unit, At: morning, Report: &report})
	}
	_, poisonous := add()
	bad := telematics.Presence{Status: telematics.Online, Session: "\x00", At: morning}
	seen = slices.Insert(seen, 1, delivery.Observation{Unit: poisonous, At: morning, Presence: &bad},
		delivery.Observation{Unit: "unknown-unit", At: morning})
	got, err := p.Observe(t.Context(), seen)
	if err == nil || !strings.Contains(err.Error(), string(poisonous)) || unavailable.Is(err) {
		t.Errorf("error %v, want one that names %s", err, poisonous)
	}
	if !slices.Equal(got.Unknown, []telematics.Unit{"unknown-unit"}) {
		t.Errorf("unknown %v", got.Unknown)
	}
	for id := range telematics.VehicleID(4) {
		twin, err := p.Twin(t.Context(), id+1)
		if err != nil || (twin.Snapshot != nil) != (twin.Unit != poisonous) {
			t.Errorf("%s: %v, %v", twin.Unit, twin.Snapshot, err)
		}
		twin.Snapshot = nil
		if record, err := p.Record(t.Context(), id+1); err != nil || !reflect.DeepEqual(*record, twin) {
			t.Errorf("record %+v, %v; want %+v", record, err, twin)
		}
	}
	if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: poisonous, At: morning, Presence: &bad}}); err == nil || unavailable.Is(err) {
		t.Errorf("alone: %v", err)
	}
}

func TestSnapshotsAreKeptByFieldWithTheirTime(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	_, unit := storetest.AddVehicle(t, p.DB, 1)
	at := time.UnixMilli(1767348000250).UTC()
	report := telematics.Report{At: at, Values: map[telematics.Field]any{telematics.SpeedKmh: 48.5, telematics.KeyStatus: nil}}
	if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: morning, Report: &report}}); err != nil {
		t.Fatal(err)
	}
	var fields string
	if err := p.Pool.Get(&fields, `select fields from snapshots where vehicle_id = 1`); err != nil {
		t.Fatal(err)
	}
	want := `{"telemetry.speed_kmh": {"v": 48.5, "at": 1767348000250}, "telemetry.key_status": {"v": null, "at": 1767348000250}}`
	if fields != want {
		t.Errorf("fields\n got %s\nwant %s", fields, want)
	}
}

// One transaction has a unit that speaks of its connection, one that only reports, and one that
// does both.
func TestAReportChangesOnlyWhenAUnitWasSeen(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	presence := telematics.Presence{Status: telematics.Online, Session: "s", At: morning, Firmware: "4.2", Actions: []telematics.Action{telematics.Lock}, Keys: []string{"k1", "k\"2"}}
	report := telematics.Report{At: morning, Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}
	var ids []telematics.VehicleID
	var units []telematics.Unit
	var spoke []delivery.Observation
	for range 3 {
		id, unit := add()
		ids, units = append(ids, id), append(units, unit)
		spoke = append(spoke, delivery.Observation{Unit: unit, At: morning, Presence: &presence})
	}
	later := presence
	later.Status, later.At = telematics.Standby, morning.Add(time.Minute)
	for _, seen := range [][]delivery.Observation{spoke, {
		{Unit: units[0], At: later.At, Presence: &later},
		{Unit: units[1], At: later.At, Report: &report},
		{Unit: units[2], At: later.At, Presence: &later},
		{Unit: units[2], At: later.At.Add(time.Minute), Report: &report},
	}} {
		if _, err := p.Observe(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
	}
	first := spoke[0].Contact(telematics.Contact{})
	moved := delivery.Observation{At: later.At, Presence: &later}.Contact(first)
	for i, want := range []telematics.Contact{moved, first.Reported(later.At), moved.Reported(later.At.Add(time.Minute))} {
		twin, err := p.Twin(t.Context(), ids[i])
		if err != nil || !reflect.DeepEqual(twin.Contact, want) {
			t.Errorf("unit %d: %v\n got %+v\nwant %+v", i, err, twin.Contact, want)
		}
		if i > 0 && len(twin.Snapshot) != 1 {
			t.Errorf("unit %d: snapshot %v", i, twin.Snapshot)
		}
	}
}

func TestAllContactsCanBeForgotten(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	presence := telematics.Presence{Status: telematics.Online, Session: "s", At: morning, Firmware: "4.2", Actions: []telematics.Action{}, Keys: []string{}}
	if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: morning, Presence: &presence}}); err != nil {
		t.Fatal(err)
	}
	if err := p.ForgetContacts(t.Context()); err != nil {
		t.Fatal(err)
	}
	twin, err := p.Twin(t.Context(), id)
	declared := telematics.Contact{Actions: presence.Actions, Keys: presence.Keys, Firmware: "4.2"}
	if err != nil || !reflect.DeepEqual(twin.Contact, declared) {
		t.Errorf("contact %+v, %v", twin.Contact, err)
	}
}

func TestForgetContacts_IsPublishedAsAbsent(t *testing.T) {
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
		t.Errorf("published %+v, %v", aged, err)
	}
}

// What is published and what a list finds follow from one expression, but a contact is judged by
// telematics.Contact.At where it is observed: the two must not contradict each other.
func TestAged_ContradictsNoObservation(t *testing.T) {
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

func TestSnapshot_RecordsThatThereWasAValue(t *testing.T) {
	address := storetest.NewDatabase(t)
	p := open(t, address)
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	at := morning.Truncate(time.Millisecond)
	for i, values := range []map[telematics.Field]any{
		{telematics.SpeedKmh: 5.0, telematics.KeyStatus: nil, telematics.OilLife: 61.0},
		{telematics.SpeedKmh: nil, telematics.KeyStatus: nil},
		{telematics.SpeedKmh: nil},
	} {
		report := telematics.Report{At: at.Add(time.Duration(i) * time.Second), Values: values}
		if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: morning, Report: &report}}); err != nil {
			t.Fatal(err)
		}
	}
	twin, err := open(t, address).Twin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[telematics.Field]bool{telematics.SpeedKmh: true, telematics.KeyStatus: false, telematics.OilLife: true, telematics.Gear: false} {
		if got := twin.Snapshot[field].Ever(); got != want {
			t.Errorf("%s: ever a value %v, want %v", field, got, want)
		}
	}
	if twin.Snapshot.Number(telematics.SpeedKmh) != nil {
		t.Error("a speed that is no longer known is returned")
	}
}
