package rentals

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// BenchmarkFindOffers measures searches among 100,000 vehicles of ten cities, with 1,000,000
// bookings on record, and reports the median: of the nearest vehicles in a city, of those in a
// place where there are none, and of a kind that is rare.
func BenchmarkFindOffers(b *testing.B) {
	p := newFixture(storetest.OpenWith(b, pg.Config{URL: storetest.NewDatabase(b), MaxConns: 20, Timeout: 10 * time.Minute}))
	now := time.Now().UTC().Truncate(time.Second)
	fillMarket(b, p, 100_000, 1_000_000, now)
	city := telematics.Position{Latitude: 48.1, Longitude: 11.5}
	for name, q := range map[string]rental.OfferQuery{
		"in a city": {Near: city, Radius: 2000},
		"far away":  {Near: telematics.Position{Latitude: 20, Longitude: 20}, Radius: 50_000},
		"rare":      {Near: city, Radius: 5000, Category: "van"},
		"all taken": {Near: city, Radius: 2000, From: now.Add(24 * time.Hour), To: now.Add(26 * time.Hour)},
	} {
		b.Run(name, func(b *testing.B) {
			q.Agency, q.HasNear, q.Limit, q.Now = 1, true, 51, now
			var took []time.Duration
			used := usedTime(b, p)
			at, found := q.Near, 0
			for b.Loop() {
				q.Near.Latitude, q.Near.Longitude = at.Latitude+rand.Float64()/20, at.Longitude+rand.Float64()/20
				began := time.Now()
				offers, _, err := p.FindOffers(b.Context(), q)
				took = append(took, time.Since(began))
				require.NoError(b, err)
				found += len(offers)
			}
			b.ReportMetric(float64((usedTime(b, p)-used).Microseconds())/1000/float64(len(took)), "cpu-ms/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(found)/float64(len(took)), "offers/op")
		})
	}
}

// usedTime returns the processor time that this process and Postgres have used: what a search takes
// on a machine with nothing else to do.
func usedTime(b *testing.B, p *fixture) time.Duration {
	b.Helper()
	var pids []int
	const ofThisDatabase = `select pid from pg_stat_activity where datname = current_database() and state is not null`
	require.NoError(b, p.Pool.Select(&pids, ofThisDatabase))
	const userTicks, tick = 13, 10 * time.Millisecond
	var used time.Duration
	for _, pid := range append(pids, os.Getpid()) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < userTicks+2 {
			b.Fatal(err, string(text))
		}
		var user, system time.Duration
		if _, err := fmt.Sscan(fields[userTicks]+" "+fields[userTicks+1], &user, &system); err != nil {
			b.Fatal(err)
		}
		used += (user + system) * tick
	}
	return used
}

// fillMarket fills a database with vehicles, in ten cities of 20 by 20 km, and bookings: one in ten
// vehicles is in use, and most bookings are over.
func fillMarket(tb testing.TB, p *fixture, vehicles, bookings int, now time.Time) {
	tb.Helper()
	for _, statement := range []string{
		`insert into agencies (id, code, name) values (1, 'A1', 'Agency 1')`,
		`insert into stations (id, agency_id, name, address, latitude, longitude)
			select n, 1, 'S' || n, 'S' || n, 48 + n / 10 * 0.2, 11.4 + n % 10 * 0.03 from generate_series(1, 100) n`,
		`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features,
			capabilities, hourly_rate)
			select n, 1, case when n % 100 = 0 then 'maintenance' when n % 10 = 1 then 'in_use' else 'available' end, 'electric',
				'M-MP ' || n, 'Renault', 'Zoe', 2024, 'blue', case when n % 200 = 2 then 'van' else 'compact' end, '',
				array['bluetooth', 'navigation'], array['lock', 'unlock'], 1200
			from generate_series(1, cast(:vehicles as int)) n`,
		`insert into units (serial, vehicle_id, status, session, said_at, changed_at, last_seen)
			select 'U' || n, n, case when n % 50 = 0 then 'offline' else 'online' end, 's', :now, :now, :now
			from generate_series(1, cast(:vehicles as int)) n`,
		`insert into snapshots (vehicle_id, fields)
			select n, jsonb_build_object('location.latitude', jsonb_build_object('v', 48 + n / 10 % 10 * 2 + random() * 0.2, 'at', 1),
				'location.longitude', jsonb_build_object('v', 11.4 + random() * 0.3, 'at', 1),
				'telemetry.battery_level_percent', jsonb_build_object('v', n / 1000, 'at', 1),
				'telemetry.remaining_range_km', jsonb_build_object('v', n % 100 * 3, 'at', 1),
				'diagnostics.warning_lamps', jsonb_build_object('v', cast('[]' as jsonb), 'at', 1), 'oem_data', jsonb_build_object('v',
				repeat('x', 1500), 'at', 1))
			from generate_series(1, cast(:vehicles as int)) n`,
		`insert into clients (agency_id, subject) select 1, 'c' || n from generate_series(1, 1000) n`,
		`insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at,
			end_at, started_at, ended_at, currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
			select 'BK-' || n, s.state, 1, (select min(id) from clients) + n % 1000, s.vehicle, 1, 1, s.begins, s.ends,
				case when s.state in ('active', 'completed') then s.begins end, case when s.state = 'completed' then s.ends end,
				'EUR', 1200, 0, 100, 1200, 0, 0, s.begins
			from generate_series(1, cast(:bookings as int)) n, lateral (
				select 1 + n % cast(:vehicles as int) as vehicle, n / cast(:vehicles as int) as nth
			) k, lateral (
				select k.vehicle, b.begins, b.begins + interval '2 hours' as ends,
					case when k.nth < 8 then 'completed' when k.nth = 8 and k.vehicle % 10 = 1 then 'active'
						when k.nth = 8 then 'cancelled' else 'upcoming' end as state
				from (
					select cast(:now as timestamptz) + (k.nth - 8) * interval '1 day' - interval '1 hour' as begins
				) b
			) s`,
		`vacuum analyze`,
	} {
		query, args, err := p.Pool.BindNamed(statement, map[string]any{"vehicles": vehicles, "bookings": bookings, "now": now})
		if err == nil {
			_, err = p.Pool.Exec(query, args...)
		}
		if err != nil {
			tb.Fatal(err, statement)
		}
	}
}
