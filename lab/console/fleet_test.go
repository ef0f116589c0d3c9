package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/lab/consoletest"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

const (
	largeFleet = 10_000
)

// largeFleetStatements add vehicles of 24 agencies, with plates, models and units, of which some
// have reported nothing.
var largeFleetStatements = []string{
	`insert into agencies (id, code, name) select n, 'LF' || n, 'Agency ' || n from generate_series(3, 24) n`,
	`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features,
			capabilities)
		select 1000 + n, 1 + n % 24,
			(array['available', 'available', 'available', 'booked', 'in_use', 'maintenance', 'inactive'])[1 + n % 7],
			(array['electric', 'combustion'])[1 + n % 2], 'M-LF ' || n,
			(array['Volkswagen', 'Renault', 'Opel', 'Fiat'])[1 + n % 4], (array['Golf', 'Zoe', 'Corsa', '500e', 'ID.3'])[1 + n % 5],
			2024, '', 'compact', '', '{}', array['lock', 'unlock']
		from generate_series(1, 10000) n`,
	`insert into units (serial, vehicle_id, status, session, said_at, changed_at, last_seen)
		select 'lf-' || n, 1000 + n, (array['online', 'online', 'standby', 'offline'])[1 + n % 4], 's', now(), now() - interval '2 days',
			case when n % 4 = 3 then now() - interval '3 days' when n % 9 = 0 then now() - interval '2 hours' else now() end
		from generate_series(1, 10000) n where n % 50 <> 0`,
	`insert into snapshots (vehicle_id, fields)
		select 1000 + n, jsonb_build_object(
			'location.latitude', jsonb_build_object('v', 47.5 + n % 100 / 50.0, 'at', at.ms),
			'location.longitude', jsonb_build_object('v', 10.5 + n / 100 / 40.0, 'at', at.ms),
			'location.timestamp', jsonb_build_object('v', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'at', at.ms),
			'telemetry.is_locked', jsonb_build_object('v', n % 11 <> 0, 'at', at.ms),
			case n % 2 when 0 then 'telemetry.battery_level_percent' else 'telemetry.fuel_level_percent' end,
				jsonb_build_object('v', n % 101, 'at', at.ms))
		from generate_series(1, 10000) n, lateral (select extract(epoch from now())::bigint * 1000 - n % 3600 * 1000 as ms) at
		where n % 30 <> 0`,
	`analyse`,
}

// fleetFilters are filters of the fleet's page, and the SQL of what they mean.
var fleetFilters = []struct{ query, where string }{
	{"", "true"},
	{"status=in_use", "v.status = 'in_use'"},
	{"contact=unknown&agency=7", "contact = 'unknown' and v.agency_id = 7"},
	{"q=m-lf 12 golf", "words like '%m-lf%' and words like '%12%' and words like '%golf%'"},
	{"q=lf-77", "words like '%lf-77%' or v.plate_number like '%LF 77%'"},
	{"q=mlf77", "v.plate_number like '%LF 77%'"},
	{
		"status=available&contact=online&agency=5&lock=locked&energy=low",
		"v.status = 'available' and contact = 'online' and v.agency_id = 5 and locked = 'true' and energy::numeric < 20",
	},
}

// fleetIDs returns the vehicles that a condition selects, by ascending id, and how many have a
// place.
func fleetIDs(t *testing.T, db *pg.DB, where string) (ids []int, located int) {
	t.Helper()
	var rows []struct {
		ID      int
		Located bool
	}
	require.NoError(t, db.Pool.Select(&rows, `
		select v.id, located from vehicles v left join units u on u.vehicle_id = v.id left join snapshots s on s.vehicle_id = v.id
		cross join lateral (select `+vehicles.Connectivity("now()", fmt.Sprint(int(telematics.OnlineFor.Seconds())))+` as contact,
			s.fields->'telemetry.is_locked'->>'v' as locked,
			s.fields->case v.powertrain when 'electric' then 'telemetry.battery_level_percent' else 'telemetry.fuel_level_percent' end
				->>'v' as energy,
			coalesce(s.fields ? 'location.latitude', false) as located,
			lower(concat_ws(' ', v.id, v.plate_number, v.brand, v.model, u.serial)) as words) is_known
		where `+where+` order by v.id`))
	for _, row := range rows {
		ids = append(ids, row.ID)
		if row.Located {
			located++
		}
	}
	return ids, located
}

// The list, the map, the counts and a bulk command have all vehicles that match, and no others.
func (d *desk) holdsALargeFleet(t *testing.T) {
	// Each of the large statements may take longer than a request of the service.
	db, err := pg.New(pg.Config{URL: d.env["MOTORPOOL_DATABASE_URL"], Timeout: time.Minute})
	require.NoError(t, err)
	defer db.Close()
	for _, statement := range largeFleetStatements {
		storetest.Exec(t, db.Pool, statement)
	}
	p := d.page(t, d.admin)
	p.Expect("status of 503") // on a busy machine: the console reads again
	all, _ := fleetIDs(t, db, "true")
	if len(all) < largeFleet {
		t.Fatalf("%d vehicles, want at least %d", len(all), largeFleet)
	}
	for _, f := range fleetFilters {
		ids, _ := fleetIDs(t, db, f.where)
		query := strings.ReplaceAll(f.query, " ", "%20")
		p.Open("#/?" + query + "&sort=-id")
		p.See("[data-count]", fmt.Sprintf("%d / %d", len(ids), len(all)))
		if len(ids) == 0 || len(ids) == len(all) && f.query != "" {
			t.Errorf("%q selects %d of %d vehicles, want some", f.query, len(ids), len(all))
			continue
		}
		p.See(fmt.Sprintf(`tr[data-vehicle="%d"][aria-rowindex="2"]`, ids[len(ids)-1]))
		p.Press("/", "ArrowDown", "End")
		p.See(fmt.Sprintf(`tr[data-vehicle="%d"][aria-rowindex="%d"]`, ids[0], len(ids)+1))
	}
	if n := consoletest.Value[int](p, `document.querySelectorAll('tr[data-vehicle]').length`); n > 100 {
		t.Errorf("%d rows are in the document, want at most 100", n)
	}
	d.showsAllOnTheMap(t, db, p)
	d.locksAllThatMatch(t, db, p)
}

func (d *desk) showsAllOnTheMap(t *testing.T, db *pg.DB, p *consoletest.Page) {
	t.Helper()
	p.Open("#/")
	p.Click("button", "Show map")
	_, located := fleetIDs(t, db, "true")
	p.See(fmt.Sprintf(`.map[data-vehicles="%d"]`, located))
	const busy = 1
	f := fleetFilters[busy]
	_, located = fleetIDs(t, db, f.where)
	p.Open("#/?" + f.query)
	p.See(fmt.Sprintf(`.map[data-vehicles="%d"]`, located))
	p.Click("button", "Hide map")
}

func (d *desk) locksAllThatMatch(t *testing.T, db *pg.DB, p *consoletest.Page) {
	t.Helper()
	want, _ := fleetIDs(t, db, "v.agency_id = 7 and locked = 'false'")
	p.Open("#/?agency=7&lock=unlocked")
	p.See("[data-count]", fmt.Sprintf("%d / ", len(want)))
	p.Press("/", "ArrowDown", "x")
	p.Click("[data-all]", fmt.Sprintf("Select all %d that match", len(want)))
	p.See("section", fmt.Sprintf("%d vehicles selected", len(want)))
	p.Click(`section [data-action="lock"]`)
	p.Fill(`dialog[open] [name="number"]`, fmt.Sprint(len(want)))
	p.Click("dialog[open] button", "Lock")
	p.See("h1", fmt.Sprintf("Lock: %d vehicles", len(want)))
	address := consoletest.Value[string](p, `location.hash`)
	bulk := url.QueryEscape(address[strings.LastIndex(address, "/")+1:])
	var ordered []int
	answer := consoletest.Value[string](p, `fetch('../api/v1/admin/commands?bulk=`+bulk+`').then((r) => r.json())
		.then((r) => JSON.stringify(r.data.items.map((i) => i.vehicle_id)))`)
	if err := json.Unmarshal([]byte(answer), &ordered); err != nil {
		t.Fatal(answer, err)
	}
	if slices.Sort(ordered); !slices.Equal(ordered, want) {
		t.Errorf("the bulk command orders vehicles %v, want %v", ordered, want)
	}
}
