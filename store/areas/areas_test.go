package areas

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/areas"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// withAgencies returns a database with the agencies 1 and 2.
func withAgencies(t *testing.T) *pg.DB {
	t.Helper()
	p := storetest.Open(t, storetest.NewDatabase(t))
	storetest.Exec(t, p.Pool, `insert into agencies (id, code, name) values (1, 'MUC', 'Isar'), (2, 'BER', 'Spree')`)
	return p
}

// square returns a square of one degree, with its southwest corner at a position.
func square(t *testing.T, latitude, longitude float64) *areas.Shape {
	t.Helper()
	shape, err := areas.ParseShape("geometry", fmt.Appendf(
		nil, `{"type":"Polygon","coordinates":[[[%g,%g],[%g,%g],[%g,%g],[%g,%g],[%g,%g]]]}`, longitude, latitude, longitude+1,
		latitude, longitude+1, latitude+1, longitude, latitude+1, longitude, latitude,
	))
	require.NoError(t, err)
	return &shape
}

func change(agency telematics.AgencyID, name string, kind rental.AreaKind, shape *areas.Shape) areas.Change {
	return areas.Change{
		Agency: agency, Area: rental.Area{Name: name, Kind: kind}, Shape: shape,
		Entry: telematics.Activity{At: time.Now(), Actor: telematics.OperatorAt("eva").Actor, Action: rental.AreaPut},
	}
}

func put(t *testing.T, a *Areas, c areas.Change) areas.Placed {
	t.Helper()
	now, _, err := a.Put(t.Context(), c)
	require.NoError(t, err)
	return now
}

var munich = telematics.Position{Latitude: 48.14, Longitude: 11.56}

// at returns the areas of an agency at a position, as an instance sees them after Within.
func at(t *testing.T, a *Areas, agency telematics.AgencyID, p telematics.Position) string {
	t.Helper()
	in, ends, err := a.At(t.Context(), agency, p)
	require.NoError(t, err)
	return fmt.Sprint(in, ends != "")
}

func code(err error) telematics.Code {
	var e *telematics.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestAreas_AChangeIsInForceAtEachInstanceWithinASecond(t *testing.T) {
	p := withAgencies(t)
	writer, reader := New(p), New(p)
	now := time.Now()
	reader.now = func() time.Time { return now }
	later := func() { now = now.Add(Within) }
	if got := at(t, reader, 1, munich); got != "[] false" {
		t.Fatal(got)
	}
	for _, step := range []struct {
		change areas.Change
		want   string
	}{
		{change(1, "town", rental.AreaOperating, square(t, 48, 11)), "[{town operating}] true"},
		{change(1, "centre", rental.AreaNoParking, square(t, 47.9, 10.9)), "[{centre no_parking} {town operating}] true"},
		{change(2, "town", rental.AreaEndOnly, square(t, 48, 11)), "[{centre no_parking} {town operating}] true"},
		{change(1, "town", rental.AreaOperating, square(t, 50, 11)), "[{centre no_parking}] true"},
		{change(1, "centre", rental.AreaEndOnly, square(t, 47.9, 10.9)), "[{centre end_only}] true"},
		{change(1, "town", "", nil), "[{centre end_only}] true"},
		{change(1, "centre", "", nil), "[] false"},
	} {
		before := at(t, reader, 1, munich)
		put(t, writer, step.change)
		if got := at(t, reader, 1, munich); got != before {
			t.Errorf("%s: read again within %v", got, Within)
		}
		later()
		assert.Equal(t, at(t, reader, 1, munich), step.want, "after %+v", step.change.Area)
	}
	assert.Equal(t, at(t, reader, 2, munich), "[{town end_only}] true", "of the other agency")
}

// A reading costs what has changed: geometries that are cached are not read again.
func TestAreas_ReadsOnlyWhatHasChanged(t *testing.T) {
	p := withAgencies(t)
	a := New(p)
	put(t, a, change(1, "town", rental.AreaOperating, square(t, 48, 11)))
	put(t, a, change(2, "town", rental.AreaOperating, square(t, 48, 11)))
	now := time.Now()
	a.now = func() time.Time { return now }
	at(t, a, 1, munich)
	first := a.cached.Load()
	put(t, a, change(2, "town", rental.AreaOperating, square(t, 49, 11)))
	now = now.Add(Within)
	at(t, a, 1, munich)
	second := a.cached.Load()
	if first == second || first.agencies[1].index != second.agencies[1].index || first.agencies[2].index == second.agencies[2].index {
		t.Error("the index of an agency without changes was built again, or the other one was not")
	}
	// The same area again is no change.
	was := put(t, a, change(2, "town", rental.AreaOperating, square(t, 49, 11)))
	again := put(t, a, change(2, "town", rental.AreaOperating, square(t, 49, 11)))
	if again.Version != was.Version || !again.Changed.Equal(was.Changed) {
		t.Errorf("the same area again has version %s, want %s", again.Version, was.Version)
	}
}

// Clients ask often whether the areas have changed: no geometry is read for them, and commands do
// not wait for these lists.
func TestAreas_AListReadsOnlyWhatHasChanged(t *testing.T) {
	p := withAgencies(t)
	a := New(p)
	was := put(t, a, change(1, "town", rental.AreaOperating, square(t, 48, 11)))
	now := time.Now()
	a.now = func() time.Time { return now }
	at(t, a, 1, munich)
	added := put(t, a, change(1, "centre", rental.AreaNoParking, square(t, 49, 11)))
	storetest.Exec(t, p.Pool, `update areas set geometry = '{}' where name = 'town'`)
	_ = p.Pool.Close()
	list, err := a.List(t.Context(), 1, "")
	if err != nil || len(list) != 2 || list[0].Version != added.Version || list[1].Version != was.Version || list[1].Shape.Points() != 5 {
		t.Errorf("areas: %v, %v", list, err)
	}
}

func TestAreas_RefusesWhatIsNotThereOrWasChanged(t *testing.T) {
	a := New(withAgencies(t))
	if _, _, err := a.Put(t.Context(), change(3, "town", rental.AreaOperating, square(t, 48, 11))); code(err) != telematics.AgencyNotFound {
		t.Errorf("an area of an agency that does not exist: %v", err)
	}
	if _, err := a.List(t.Context(), 3, ""); code(err) != telematics.AgencyNotFound {
		t.Errorf("its areas: %v", err)
	}
	if _, _, err := a.Put(t.Context(), change(1, "town", "", nil)); code(err) != rental.AreaNotFound {
		t.Errorf("removed although there is none: %v", err)
	}
	first, added, err := a.Put(t.Context(), change(1, "town", rental.AreaOperating, square(t, 48, 11)))
	if !added || err != nil {
		t.Fatal(added, err)
	}
	second, added, err := a.Put(t.Context(), change(1, "town", rental.AreaEndOnly, square(t, 48, 11)))
	if added || err != nil || second.Version == first.Version {
		t.Fatal(added, err)
	}
	stale := change(1, "town", "", nil)
	stale.Version = first.Version.String()
	if _, _, err := a.Put(t.Context(), stale); code(err) != rental.AreaChanged {
		t.Errorf("removed although it was changed meanwhile: %v", err)
	}
	if list, err := a.List(t.Context(), 1, ""); len(list) != 1 || list[0].Version != second.Version || err != nil {
		t.Errorf("areas: %v, %v", list, err)
	}
	stale.Version = second.Version.String()
	put(t, a, stale)
	if list, err := a.List(t.Context(), 1, ""); len(list) != 0 || err != nil {
		t.Errorf("areas: %v, %v", list, err)
	}
}

func TestAreas_HasAMostNumberOfThemByAgency(t *testing.T) {
	p := withAgencies(t)
	a := New(p)
	put(t, a, change(1, "a0", rental.AreaOperating, square(t, 48, 11)))
	storetest.Exec(t, p.Pool, `insert into areas (agency_id, name, kind, geometry)
		select 1, 'a' || n, kind, geometry from areas, generate_series(1, $1) n`, areas.MaxAreas-2)
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			_, _, results[i] = a.Put(t.Context(), change(1, fmt.Sprint("b", i), rental.AreaOperating, square(t, 48, 11)))
		})
	}
	wg.Wait()
	done := 0
	for _, err := range results {
		switch {
		case err == nil:
			done++
		case code(err) != rental.AreaLimit:
			t.Error(err)
		}
	}
	if done != 1 {
		t.Errorf("%d areas were added, want the last one", done)
	}
	// A change of one adds none.
	put(t, a, change(1, "a0", rental.AreaNoParking, square(t, 48, 11)))
}

func TestAreas_RecordsEachChange(t *testing.T) {
	p := withAgencies(t)
	a := New(p)
	put(t, a, change(1, "town", rental.AreaOperating, square(t, 48, 11)))
	entries, err := activity.New(p).Activities(t.Context(), telematics.ActivityQuery{Agency: 1, Page: telematics.Page{Limit: 9}})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if e := entries[0]; e.Action != rental.AreaPut || e.Outcome != telematics.Executed || e.Actor.Subject != "eva" ||
		fmt.Sprint(e.Details) != "map[area:town kind:operating points:5]" {
		t.Errorf("entry: %+v", e)
	}
}

// Without Postgres there is no answer that is older than Within.
func TestAreas_AreNotOlderThanASecond(t *testing.T) {
	p := withAgencies(t)
	a := New(p)
	put(t, a, change(1, "town", rental.AreaOperating, square(t, 48, 11)))
	now := time.Now()
	a.now = func() time.Time { return now }
	at(t, a, 1, munich)
	storetest.Exec(t, p.Pool, `alter table areas rename to areas_away`)
	now = now.Add(Within - 1)
	if got := at(t, a, 1, munich); got != "[{town operating}] true" {
		t.Error(got)
	}
	now = now.Add(1)
	if _, _, err := a.At(t.Context(), 1, munich); err == nil {
		t.Error("an old answer")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.At(ctx, 1, munich); err == nil {
		t.Error("for a caller that has gone: no error")
	}
}

// Concurrent searches, changes and readings: each search sees an area as it was before or after
// each change.
func TestAreas_AreSafeForConcurrentUse(t *testing.T) {
	a := New(withAgencies(t))
	put(t, a, change(1, "town", rental.AreaOperating, square(t, 48, 11)))
	begun := time.Now() // of a clock that makes it read each millisecond
	a.now = func() time.Time { return begun.Add(1000 * time.Since(begun)) }
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if in, ends, err := a.At(t.Context(), 1, munich); err != nil || ends == "" || len(in) != 1 {
					t.Error(in, ends, err)
					return
				}
			}
		})
	}
	for i := range 30 {
		kind := []rental.AreaKind{rental.AreaOperating, rental.AreaEndOnly}[i%2]
		put(t, a, change(1, "town", kind, square(t, 48+float64(i%3)/100, 11)))
	}
	close(stop)
	wg.Wait()
}

func TestAreas_HaveAMostSizeByAgency(t *testing.T) {
	p := withAgencies(t)
	a := New(p)
	put(t, a, change(1, "a0", rental.AreaOperating, square(t, 48, 11)))
	grow := `update areas set geometry = geometry || jsonb_build_object('more', repeat('x', $1))`
	storetest.Exec(t, p.Pool, grow, areas.MaxTotal-250)
	put(t, a, change(1, "a1", rental.AreaOperating, square(t, 48, 11)))
	if _, _, err := a.Put(t.Context(), change(1, "a2", rental.AreaOperating, square(t, 48, 11))); code(err) != rental.AreaLimit {
		t.Errorf("more than an agency may have: %v", err)
	}
	put(t, a, change(2, "a2", rental.AreaOperating, square(t, 48, 11)))
}
