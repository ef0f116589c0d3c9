package alerts

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// BenchmarkSweep measures a sweep of a fleet of which one vehicle in twelve has reported since the
// last one: each does once a minute. VEHICLES sets their number.
func BenchmarkSweep(b *testing.B) {
	cars := 10_000
	if text := os.Getenv("VEHICLES"); text != "" {
		if _, err := fmt.Sscan(text, &cars); err != nil {
			b.Fatal(err)
		}
	}
	address := storetest.NewDatabase(b)
	patient, err := pg.New(pg.Config{URL: address, Timeout: 10 * time.Minute})
	require.NoError(b, err)
	defer patient.Close()
	db := storetest.Open(b, address)
	for _, statement := range []string{
		`insert into agencies (id, code, name) select n, 'A' || n, '' from generate_series(1, 24) n`,
		`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features,
			capabilities) select n, 1 + n % 24,
			case when n % 10 = 0 then 'in_use' else 'available' end, 'electric', 'M-' || n, '', '', 2024, '', '', '', '{}', '{}'
			from generate_series(1, $1::bigint) n`,
		`insert into units (serial, vehicle_id, status, last_seen, said_at, changed_at, gap_ms)
			select 'u' || n, n, 'online', now() - n % 60 * interval '1 second', now(), now(), 60000 from generate_series(1, $1::bigint) n`,
		`insert into snapshots (vehicle_id, fields) select n, jsonb_build_object(
			'location.latitude', jsonb_build_object('v', 48 + n % 100 / 100.0, 'at', 1700000000000),
			'location.longitude', jsonb_build_object('v', 11 + n % 90 / 90.0, 'at', 1700000000000),
			'telemetry.ignition', jsonb_build_object('v', case when n % 10 = 0 then 'on' else 'off' end, 'at', 1700000000000),
			'telemetry.is_locked', jsonb_build_object('v', n % 50 > 0, 'at', 1700000000000),
			'telemetry.onboard_voltage_v', jsonb_build_object('v', 12.15 + n % 50 / 30.0, 'at', 1700000000000),
			'telemetry.battery_level_percent', jsonb_build_object('v', 18 + n % 80, 'at', 1700000000000),
			'diagnostics.dtcs', jsonb_build_object('v', case when n % 50 = 1 then '["P0420"]' else '[]' end::jsonb, 'at', 1700000000000),
			'oem_data', jsonb_build_object('v', (select jsonb_object_agg('key' || k, md5((n * k)::text)) from generate_series(1, 50) k),
				'at', 1700000000000)) from generate_series(1, $1::bigint) n`,
		`insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, requested_at, sent_at,
			completed_at, deadline, state, reason, attempts, detail)
			select (left(command_id_at(now() - n % 1000 * interval '1 minute')::text, 19) || right(gen_random_uuid()::text, 17))::uuid,
				1 + n % $1::bigint, 1, 'u' || 1 + n % $1::bigint, 'lock', 'access', 'i', 'eva', 'admin', now(), now(), now(), now(),
				case when n % 20 = 0 then 'unknown' else 'succeeded' end, '', 1, '' from generate_series(1, 10 * $1::bigint) n`,
		`insert into activity (at, actor_subject, actor_role, agency_id, vehicle_id, action, outcome, code, latency_us, late, note)
			select now() - n % 86400 * interval '1 second', 'admin-' || n % 100, 'admin', 1, 1 + n % $1::bigint, 'status.read', 'executed',
				'', 0, false,
				'' from generate_series(1, 20 * $1::bigint) n`,
		`analyze`,
	} {
		args := []any{cars}
		if statement[0] == 'a' || statement[:20] == "insert into agencies" {
			args = nil
		}
		storetest.Exec(b, patient.Pool, statement, args...)
	}
	town := areasAt(func(at telematics.Position) ([]rental.Area, rental.AreaKind) {
		if at.Longitude < 11.03 {
			return nil, rental.AreaOperating
		}
		return []rental.Area{{Name: "town", Kind: rental.AreaOperating}}, rental.AreaOperating
	})
	s := New(Config{DB: db, Areas: town})
	began := time.Now()
	require.NoError(b, s.Sweep(b.Context()))
	b.Logf("first sweep: %v", time.Since(began))
	storetest.Exec(b, patient.Pool, `analyze`)
	pools := []*sqlx.DB{db.Pool, db.Lists}
	backends := make([]int, len(pools))
	for i, pool := range pools {
		pool.SetMaxOpenConns(1)
		require.NoError(b, pool.Get(&backends[i], `select pg_backend_pid()`))
	}
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		storetest.Exec(b, patient.Pool, `update snapshots set updated_at = clock_timestamp()
			where vehicle_id % 12 = $1`, b.N%12)
		used -= cpuTime(b, backends)
		b.StartTimer()
		require.NoError(b, s.Sweep(b.Context()))
		used += cpuTime(b, backends)
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "postgres-cpu-ms/op")
	open, err := s.Open(b.Context())
	b.Logf("%d alerts are open, %v", len(open), err)
}

// cpuTime returns the CPU time that processes have used.
func cpuTime(b *testing.B, processes []int) (used time.Duration) {
	b.Helper()
	for _, process := range processes {
		var nanoseconds time.Duration
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", process))
		if err == nil {
			_, err = fmt.Sscan(string(text), &nanoseconds)
		}
		require.NoError(b, err)
		used += nanoseconds
	}
	return used
}
