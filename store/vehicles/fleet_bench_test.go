package vehicles

import (
	"fmt"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

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
		if _, err := p.Pool.NamedExec(statement, map[string]any{"vehicles": vehicles, "now": now.UTC()}); err != nil {
			tb.Fatal(err)
		}
	}
	report, dropped, err := v1.DecodeReport([]byte(benchReport), now)
	if err != nil || len(dropped) > 0 {
		tb.Fatal(dropped, err)
	}
	fields, err := EncodeSnapshot(telematics.Merge(nil, report))
	require.NoError(tb, err)
	storetest.Exec(tb, p.Pool, `insert into snapshots (vehicle_id, fields) select id, $1::jsonb
		from vehicles`, pg.JSONRecords(fields))
	storetest.Exec(tb, p.Pool, `analyse`)
}

const benchReport = `{"at":"2026-01-02T10:00:00.250Z",
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

// fleetQueries are measured for the first page and for a late one.
var fleetQueries = []struct {
	name  string
	query telematics.VehicleQuery
}{
	{"everything", telematics.VehicleQuery{}},
	{"agency", telematics.VehicleQuery{Agency: 3}},
	{"status, one in three", telematics.VehicleQuery{Status: telematics.InUse}},
	{"status, one in a hundred", telematics.VehicleQuery{Status: telematics.Maintenance}},
	{"status, none", telematics.VehicleQuery{Status: telematics.Inactive}},
	{"online", telematics.VehicleQuery{Connectivity: telematics.Online}},
	{"unknown, one in twenty", telematics.VehicleQuery{Connectivity: telematics.Absent}},
	{"offline, one in a hundred", telematics.VehicleQuery{Connectivity: telematics.Offline}},
	{"standby, none", telematics.VehicleQuery{Connectivity: telematics.Standby}},
	{"text, one in four", telematics.VehicleQuery{Text: "volks"}},
	{"text, one plate", telematics.VehicleQuery{Text: "mp 77"}},
	{"text, one unit", telematics.VehicleQuery{Text: "0000000004711"}},
	{"text, none", telematics.VehicleQuery{Text: "lamborghini"}},
	{"all together", telematics.VehicleQuery{Agency: 4, Status: telematics.InUse, Connectivity: telematics.Online, Text: "golf"}},
}

func BenchmarkFleetList(b *testing.B) {
	p := open(b, storetest.NewDatabase(b))
	now := time.Now()
	fillFleet(b, p, 10_000, now)
	for _, c := range fleetQueries {
		for _, before := range []int64{0, 2000} {
			c.query.Page = telematics.Page{Limit: 51, Before: before}
			b.Run(fmt.Sprintf("%s, before %d", c.name, before), func(b *testing.B) {
				for b.Loop() {
					if _, err := p.twinsAt(b.Context(), c.query, now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("everything, 200", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.twinsAt(b.Context(), telematics.VehicleQuery{Page: telematics.Page{Limit: 201}}, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
