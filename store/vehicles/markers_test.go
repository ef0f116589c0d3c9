package vehicles

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func (f *fixture) markers(tb testing.TB, q telematics.MarkerQuery) []telematics.Marker {
	tb.Helper()
	var found []telematics.Marker
	require.NoError(tb, f.Markers(tb.Context(), q, func(m telematics.Marker) error { found = append(found, m); return nil }))
	return found
}

func TestMarkers_AgreeWithTheVehicleStatus(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	now := time.Now()
	fillFleet(t, p, 200, now)
	for _, statement := range []string{
		`update vehicles set powertrain = 'electric' where id % 2 = 0`,
		`update snapshots set fields = fields || '{"telemetry.battery_level_percent": {"v": 17.5, "at": 1767348000000}}'
			where vehicle_id % 4 = 0`,
		`update snapshots set fields = fields - 'location.latitude' where vehicle_id % 5 = 0`,
		`update snapshots
			set fields = fields || '{"location.longitude": {"v": null, "at": 1767348000000, "once": true},
				"telemetry.is_locked": {"v": "maybe", "at": 1}}'
			where vehicle_id % 7 = 0`,
		`delete from snapshots where vehicle_id % 11 = 0`,
		`delete from units where vehicle_id % 13 = 0`,
	} {
		storetest.Exec(t, p.Pool, statement)
	}
	twins, err := p.Twins(t.Context(), telematics.VehicleQuery{})
	require.NoError(t, err)
	slices.Reverse(twins)
	markers := p.markers(t, telematics.MarkerQuery{})
	if len(markers) != len(twins) {
		t.Fatalf("%d markers, %d vehicles", len(markers), len(twins))
	}
	for i, twin := range twins {
		m, known := markers[i], twin.Snapshot.For(twin.Powertrain)
		want := telematics.Marker{
			ID: twin.ID, Agency: twin.AgencyID, Status: twin.Status, Connectivity: twin.Contact.At(now),
			Plate: twin.Plate, Brand: twin.Brand, Model: twin.Model, Unit: twin.Unit, Powertrain: twin.Powertrain,
			LastSeen: twin.Contact.LastSeen, Locked: known.Flag(telematics.IsLocked),
		}
		if position, ok := known.Position(); ok {
			want.Position, want.LocatedAt = &position, *known.Time(telematics.LocatedAt)
		}
		energy := telematics.FuelLevel
		if twin.Powertrain == telematics.Electric {
			energy = telematics.Battery
		}
		if want.Energy = known.Number(energy); want.Energy != nil {
			want.EnergyAt = known.Of(energy).At
		}
		if want.Locked != nil {
			want.LockedAt = known.Of(telematics.IsLocked).At
		}
		if status := known.Text(telematics.Charging); status != nil {
			want.Charging, want.ChargingAt = new(*status == "charging"), known.Of(telematics.Charging).At
		}
		assert.Equal(t, describe(m), describe(want), "marker")
	}
	assert.Equal(t, len(p.markers(t, telematics.MarkerQuery{Agency: 3})), 20, "markers of agency 3")
}

func describe(m telematics.Marker) string {
	text := fmt.Sprintln(m.ID, m.Agency, m.Plate, m.Brand, m.Model, m.Unit, m.Powertrain, m.Status,
		m.Connectivity, m.LocatedAt.Unix(), m.LastSeen.UnixMilli())
	if m.Position != nil {
		text += fmt.Sprint(*m.Position)
	}
	if m.Locked != nil {
		text += fmt.Sprint(" locked ", *m.Locked, m.LockedAt.UnixMilli())
	}
	if m.Energy != nil {
		text += fmt.Sprint(" energy ", *m.Energy, m.EnergyAt.UnixMilli())
	}
	if m.Charging != nil {
		text += fmt.Sprint(" charging ", *m.Charging, m.ChargingAt.UnixMilli())
	}
	return text
}

func TestMarkers_OfABox(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	fillFleet(t, p, 5, time.Now())
	for id, position := range map[int]string{1: `10, 20`, 2: `-10, 179.5`, 3: `-10, -179.5`, 4: `"x", 20`} {
		storetest.Exec(t, p.Pool, fmt.Sprintf(`update snapshots set fields = jsonb_build_object('location.latitude', jsonb_build_object('v',
			'[%s]'::jsonb->0), 'location.longitude', jsonb_build_object('v', '[%s]'::jsonb->1)) where vehicle_id = %d`,
			position, position, id))
	}
	for _, test := range []struct {
		box  telematics.Box
		want []telematics.VehicleID
	}{
		{telematics.Box{West: 19, South: 9, East: 21, North: 11}, []telematics.VehicleID{1}},
		{telematics.Box{West: 20, South: 10, East: 20, North: 10}, []telematics.VehicleID{1}},
		{telematics.Box{West: 170, South: -20, East: -170, North: 0}, []telematics.VehicleID{2, 3}},
		{telematics.Box{West: -180, South: -90, East: 180, North: 90}, []telematics.VehicleID{1, 2, 3, 5}},
		{telematics.Box{West: 0, South: 0, East: 1, North: 1}, nil},
	} {
		var got []telematics.VehicleID
		for _, m := range p.markers(t, telematics.MarkerQuery{Box: &test.box}) {
			got = append(got, m.ID)
		}
		assert.EqualSlices(t, got, test.want, "box %+v: vehicles", test.box)
	}
}

// fillFleet adds vehicles of ten agencies, each with a unit and a complete snapshot. One in a
// hundred is in maintenance, one in twenty has long been silent, one in fifty is offline.
func fillFleet(tb testing.TB, p *fixture, vehicles int, now time.Time) {
	tb.Helper()
	for _, statement := range []string{
		`insert into agencies (id, code, name) select n, 'A' || n, 'Agency ' || n from generate_series(1, 10) n`,
		`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features,
			capabilities)
			select n, 1 + n % 10, case when n % 100 = 0 then 'maintenance' when n % 3 = 0 then 'in_use'
			else 'available' end, 'combustion', 'M-MP ' || n,
				(array['Volkswagen', 'Renault', 'Opel', 'Fiat'])[1 + n % 4], (array['Golf', 'Zoe', 'Corsa', '500e', 'ID.3'])[1 + n % 5],
				2024, 'blue', 'compact', '',
				array['bluetooth', 'navigation'], array['lock', 'unlock']
			from generate_series(1, cast(:vehicles as int)) n`,
		`insert into units (serial, vehicle_id, status, session, said_at, changed_at, last_seen)
			select '35' || lpad(cast(n as text), 13, '0'), n, case when n % 50 = 0 then 'offline'
			else 'online' end, 's', :now, cast(:now as timestamptz) - interval '10 seconds',
				cast(:now as timestamptz) - case when n % 20 = 0 then interval '1 hour' else interval '20 seconds' end
			from generate_series(1, cast(:vehicles as int)) n`,
	} {
		if _, err := p.owner.db.Pool.NamedExec(statement, map[string]any{"vehicles": vehicles, "now": now.UTC()}); err != nil {
			tb.Fatal(err)
		}
	}
	report, dropped, err := v1.DecodeReport([]byte(fullReport), now)
	if err != nil || len(dropped) > 0 {
		tb.Fatal(dropped, err)
	}
	fields, err := EncodeSnapshot(telematics.Merge(nil, report))
	require.NoError(tb, err)
	storetest.Exec(tb, p.Pool, `insert into snapshots (vehicle_id, fields) select id, $1::jsonb
		from vehicles`, pg.JSON(fields))
	storetest.Exec(tb, p.Pool, `analyse`)
}

const fullReport = `{"at":"2026-01-02T10:00:00.250Z",
 "location":{"latitude":48.1371,"longitude":11.5754,"heading":270,"timestamp":"2026-01-02T09:59:58Z"},
 "telemetry":{"speed_kmh":48.5,"mileage_km":15230.4,"ignition":"on","gear":"D","parking_brake":"released",
  "fuel_level_percent":61,"remaining_range_km":412.5,
  "onboard_voltage_v":12.6,"is_locked":false,"is_engine_running":true,"sunroof":"tilted","key_status":"in",
  "doors":{"front_left":"closed","front_right":"open","rear_left":"closed","rear_right":"closed","trunk":"closed"},
  "windows":{"front_left":"closed","front_right":"partially_open","rear_left":"open","rear_right":"closed"},
  "seatbelts":{"driver":"fastened","passenger":"unfastened"}},
 "diagnostics":{"dtcs":["P0420"],"service_due_in_km":-200,"oil_life_percent":61,"warning_lamps":["tire_failure"]},
 "connectivity":{"rsrp_dbm":-97,"firmware_version":"4.2.1"},
 "oem_data":{"immobilizer":"released"}}`
