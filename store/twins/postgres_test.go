package twins

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestObserve_InvalidObservationFailsAlone(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	report := telematics.Report{At: morning.Truncate(time.Millisecond), Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}
	var seen []delivery.Observation
	for range 3 {
		_, unit := add()
		seen = append(seen, delivery.Observation{Unit: unit, At: morning, Report: &report})
	}
	_, invalid := add()
	bad := telematics.Presence{Status: telematics.Online, Session: "\x00", At: morning}
	seen = slices.Insert(seen, 1, delivery.Observation{Unit: invalid, At: morning, Presence: &bad},
		delivery.Observation{Unit: "unknown-unit", At: morning})
	got, err := p.Observe(t.Context(), seen)
	if err == nil || !strings.Contains(err.Error(), string(invalid)) || unavailable.Is(err) {
		t.Errorf("error %v, want one that names %s", err, invalid)
	}
	assert.EqualSlices(t, got.Unknown, []telematics.Unit{"unknown-unit"}, "unknown units")
	for id := range telematics.VehicleID(4) {
		twin, err := p.Twin(t.Context(), id+1)
		if err != nil || (twin.Snapshot != nil) != (twin.Unit != invalid) {
			t.Errorf("unit %s: snapshot %v, %v; want one except for the invalid report", twin.Unit, twin.Snapshot, err)
		}
		twin.Snapshot = nil
		if record, err := p.Record(t.Context(), id+1); err != nil || !reflect.DeepEqual(*record, twin) {
			t.Errorf("Record = %+v, %v; want %+v", record, err, twin)
		}
	}
	if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: invalid, At: morning, Presence: &bad}}); err == nil ||
		unavailable.Is(err) {
		t.Errorf("the invalid observation alone: %v, want an error of its value", err)
	}
}

func TestObserve_StoresEachFieldWithItsTime(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	_, unit := storetest.AddVehicle(t, p.DB, 1)
	at := time.UnixMilli(1767348000250).UTC()
	report := telematics.Report{At: at, Values: map[telematics.Field]any{telematics.SpeedKmh: 48.5, telematics.KeyStatus: nil}}
	_, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: morning, Report: &report}})
	require.NoError(t, err)
	var fields string
	require.NoError(t, p.Pool.Get(&fields, `select fields from snapshots where vehicle_id = 1`))
	want := `{"telemetry.speed_kmh": {"v": 48.5, "at": 1767348000250}, "telemetry.key_status": {"v": null, "at": 1767348000250}}`
	if fields != want {
		t.Errorf("fields\n got %s\nwant %s", fields, want)
	}
}

// In one transaction, one unit sends presence, one a report, and one both.
func TestObserve_ReportChangesOnlyLastSeenOfTheContact(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	presence := telematics.Presence{
		Status: telematics.Online, Session: "s", At: morning, Firmware: "4.2",
		Actions: []telematics.Action{telematics.Lock}, Keys: []string{"k1", "k\"2"},
	}
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
		_, err := p.Observe(t.Context(), seen)
		require.NoError(t, err)
	}
	first := spoke[0].Contact(telematics.Contact{})
	moved := delivery.Observation{At: later.At, Presence: &later}.Contact(first)
	for i, want := range []telematics.Contact{moved, first.Reported(later.At), moved.Reported(later.At.Add(time.Minute))} {
		twin, err := p.Twin(t.Context(), ids[i])
		if err != nil || !reflect.DeepEqual(twin.Contact, want) {
			t.Errorf("unit %d: error %v, contact\n got %+v\nwant %+v", i, err, twin.Contact, want)
		}
		if i > 0 && twin.Snapshot.Len() != 1 {
			t.Errorf("unit %d: snapshot %v, want one reading", i, twin.Snapshot)
		}
	}
}

func TestForgetContacts_KeepsWhatUnitsDeclaredAndPublishesThemAsAbsent(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	presence := telematics.Presence{
		Status: telematics.Online, Session: "s", At: time.Now(), Firmware: "4.2", Actions: []telematics.Action{},
		Keys: []string{},
	}
	_, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: presence.At, Presence: &presence}})
	require.NoError(t, err)
	require.NoError(t, p.ForgetContacts(t.Context()))
	twin, err := p.Twin(t.Context(), id)
	declared := telematics.Contact{Actions: presence.Actions, Keys: presence.Keys, Firmware: "4.2"}
	if err != nil || !reflect.DeepEqual(twin.Contact, declared) {
		t.Errorf("contact %+v, %v; want only the declared parts", twin.Contact, err)
	}
	aged, err := p.Aged(t.Context())
	if err != nil || len(aged) != 1 || aged[0].Vehicle != id || aged[0].Presence != telematics.Absent || !aged[0].LastSeen.IsZero() {
		t.Errorf("published %+v, %v; want the vehicle as absent", aged, err)
	}
}

// Published presence and list filters use one SQL expression, while observations use
// telematics.Contact.At: both must agree.
func TestAged_AgreesWithObservations(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	now := time.Now()
	for _, age := range []time.Duration{
		0, time.Minute, telematics.OnlineFor - 2*time.Minute, telematics.OnlineFor + time.Second, time.Hour,
	} {
		for _, status := range []telematics.PresenceStatus{telematics.Online, telematics.Standby, telematics.Offline} {
			for _, retained := range []bool{false, true} {
				for _, heard := range []bool{false, true} {
					_, unit := add()
					at := now.Add(-age)
					seen := []delivery.Observation{
						{Unit: unit, At: at, Retained: retained, Presence: &telematics.Presence{Status: status, Session: "s", At: at}},
					}
					if heard {
						seen = append(seen, delivery.Observation{Unit: unit, At: at.Add(time.Second)})
					}
					_, err := p.Observe(t.Context(), seen)
					require.NoError(t, err)
				}
			}
		}
	}
	if aged, err := p.Aged(t.Context()); err != nil || len(aged) > 0 {
		t.Errorf("published again: %+v, %v; want nothing", aged, err)
	}
}

func TestSnapshot_RecordsThatAFieldHadAValue(t *testing.T) {
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
		_, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: morning, Report: &report}})
		require.NoError(t, err)
	}
	twin, err := open(t, address).Twin(t.Context(), id)
	require.NoError(t, err)
	for field, want := range map[telematics.Field]bool{telematics.SpeedKmh: true, telematics.KeyStatus: false, telematics.OilLife: true,
		telematics.Gear: false} {
		assert.Equal(t, twin.Snapshot.Of(field).Ever(), want, "%s: had a value", field)
	}
	if twin.Snapshot.Number(telematics.SpeedKmh) != nil {
		t.Error("a speed is returned, although its newest value is null")
	}
}

// What an operator does where clocks were far ahead (docs/alerts.md).
func TestObserve_StateOfAClockFarAheadIsRemovedByTheRunbook(t *testing.T) {
	runbook, err := os.ReadFile("../../docs/alerts.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(runbook), "```sql\nupdate snapshots")
	statement, _, _ := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the runbook has no statement")
	}
	p := open(t, storetest.NewDatabase(t))
	_, unit := storetest.AddVehicle(t, p.DB, 1)
	observe := func(at time.Time, values map[telematics.Field]any) {
		t.Helper()
		report := telematics.Report{At: at, Values: values}
		_, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: at, Report: &report}})
		require.NoError(t, err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	observe(now, map[telematics.Field]any{telematics.FuelLevel: 60.0, telematics.SpeedKmh: 1.0})
	observe(now.AddDate(70, 0, 0), map[telematics.Field]any{telematics.SpeedKmh: 2.0})
	storetest.Exec(t, p.Pool, "update snapshots"+statement)
	observe(now.Add(time.Second), map[telematics.Field]any{telematics.SpeedKmh: 3.0})
	twin, err := p.Twin(t.Context(), 1)
	require.NoError(t, err)
	want := telematics.Snapshot{telematics.FuelLevel: {Value: 60.0, At: now}, telematics.SpeedKmh: {Value: 3.0, At: now.Add(time.Second)}}
	if !reflect.DeepEqual(twin.Snapshot, want.Clone()) {
		t.Errorf("%+v, want %+v", twin.Snapshot, want)
	}
}
