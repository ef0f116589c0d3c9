package vehicles

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func anyOf[T any](list ...T) T { return list[rand.IntN(len(list))] }

// randomFleet imports vehicles that differ in everything that a filter uses, and returns them.
func randomFleet(t *testing.T, p *fixture, n int) []telematics.Twin {
	t.Helper()
	file := FleetFile{
		Agencies: []telematics.Agency{{ID: 1, Code: "A", Name: "A"}, {ID: 2, Code: "B", Name: "B"}, {ID: 3, Code: "C", Name: "C"}},
	}
	for i := range n {
		v := telematics.Vehicle{
			ID:       telematics.VehicleID(1 + i*3 + rand.IntN(3)),
			AgencyID: anyOf[telematics.AgencyID](1, 2, 3), Status: anyOf(telematics.VehicleStatuses...),
			Powertrain: telematics.Combustion,
			Plate:      fmt.Sprintf("%s-%s %d", anyOf("M", "B", "HH"), anyOf("XY", "AB", "ab"), i),
			Brand:      anyOf("Volkswagen", "Opel", "FIAT"), Model: anyOf("Golf", "Corsa", "500e", "ID_3", "100%"),
		}
		if rand.IntN(10) > 0 {
			v.Unit = telematics.Unit(fmt.Sprintf("%s-%d", anyOf("unit", "UNIT"), i))
		}
		file.Vehicles = append(file.Vehicles, v)
	}
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	twins := make([]telematics.Twin, len(file.Vehicles))
	for i, v := range file.Vehicles {
		twins[i].Vehicle = v
		if v.Unit == "" {
			continue
		}
		twins[i].Contact = randomContact()
		c := twins[i].Contact
		_, err := p.Pool.Exec(`update units set status = $2, last_seen = $3, changed_at = $4 where serial = $1`,
			v.Unit, pg.Nullable(string(c.Status)), pg.Timestamp(c.LastSeen), pg.Timestamp(c.ChangedAt))
		require.NoError(t, err)
	}
	slices.SortFunc(twins, func(a, b telematics.Twin) int { return int(b.ID - a.ID) })
	return twins
}

func randomContact() telematics.Contact {
	instant := func() time.Time {
		return anyOf(
			time.Time{}, morning, morning.Add(-time.Minute), morning.Add(-telematics.OnlineFor),
			morning.Add(-telematics.OnlineFor-time.Microsecond), morning.Add(-time.Hour),
		)
	}
	return telematics.Contact{
		Status:   anyOf("", telematics.Online, telematics.Standby, telematics.Offline),
		LastSeen: instant(), ChangedAt: instant(),
	}
}

func randomQuery() telematics.VehicleQuery {
	return telematics.VehicleQuery{
		Agency:       anyOf[telematics.AgencyID](0, 0, 1, 2, 3, 4),
		Status:       anyOf(append([]telematics.VehicleStatus{"", "", ""}, telematics.VehicleStatuses...)...),
		Connectivity: anyOf(append([]telematics.PresenceStatus{"", "", ""}, telematics.PresenceStatuses...)...),
		Text:         anyOf("", "", "", "volks", "VOLKS", "golf", "xy 1", "-ab", "x-Y1", "%", "_", "-", "unit-1", "Unit", "nothing"),
	}
}

// selects is the meaning of a query.
func selects(q telematics.VehicleQuery, t telematics.Twin) bool {
	contains := func(s string) bool {
		return q.Text == "" || telematics.Plain(q.Text) != "" && strings.Contains(telematics.Plain(s), telematics.Plain(q.Text))
	}
	hasSerial := strings.Contains(strings.ToLower(string(t.Unit)), strings.ToLower(q.Text))
	return (q.Agency == 0 || q.Agency == t.AgencyID) && (q.Status == "" || q.Status == t.Status) &&
		(q.Connectivity == "" || q.Connectivity == t.Contact.At(morning)) &&
		(contains(t.Plate) || contains(t.Brand) || contains(t.Model) || hasSerial)
}

// pagesOf reads a list to its end; between is called between two pages.
func pagesOf(t *testing.T, p *fixture, q telematics.VehicleQuery, limit int, between func()) []telematics.VehicleID {
	t.Helper()
	var ids []telematics.VehicleID
	q.Page = telematics.Page{Limit: limit}
	for {
		twins, err := p.twinsAt(t.Context(), q, morning)
		require.NoError(t, err)
		ids = append(ids, twinIDs(twins)...)
		if len(twins) < limit {
			return ids
		}
		q.Before = int64(twins[limit-1].ID)
		between()
	}
}

func TestTwins_FiltersCombineAndPagesAreComplete(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	fleet := randomFleet(t, p, 150)
	matched := 0
	for range 100 {
		q := randomQuery()
		var want []telematics.VehicleID
		for _, twin := range fleet {
			if selects(q, twin) {
				want = append(want, twin.ID)
			}
		}
		matched += len(want)
		if got := pagesOf(t, p, q, 1+rand.IntN(40), func() {}); !slices.Equal(got, want) {
			t.Fatalf("query %+v\n got %v\nwant %v", q, got, want)
		}
	}
	if matched < 125 {
		t.Errorf("the queries selected %d vehicles in all, want at least 125", matched)
	}
}

func TestTwins_PagesAreStableWhileTheFleetChanges(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	fleet := randomFleet(t, p, 60)
	last := fleet[0].ID
	got := pagesOf(t, p, telematics.VehicleQuery{}, 7, func() {
		last++
		storetest.AddVehicle(t, p.DB, last) // newer than each page
		storetest.Exec(t, p.Pool, `update vehicles set status = 'inactive', plate_number = plate_number || 'x'
			where id % 3 = $1`, rand.IntN(3))
		storetest.Exec(t, p.Pool, `update units set last_seen = now(), status = 'offline'
			where vehicle_id % 3 = $1`, rand.IntN(3))
	})
	assert.EqualSlices(t, got, twinIDs(fleet), "vehicles of all pages")
}
