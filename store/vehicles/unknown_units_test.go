package vehicles

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// heardOf returns unknown units as one instance stores them, with numbers from first on.
func heardOf(first, n int, at time.Time) []telematics.UnknownUnit {
	var heard []telematics.UnknownUnit
	for i := range n {
		heard = append(
			heard,
			telematics.UnknownUnit{Unit: telematics.Unit(fmt.Sprintf("s-%05d", first+i)), FirstSeen: at, LastSeen: at, Messages: 1},
		)
	}
	return heard
}

func note(t *testing.T, p *fixture, heard ...telematics.UnknownUnit) {
	t.Helper()
	require.NoError(t, p.StoreUnknownUnits(t.Context(), heard))
}

func unknownUnits(t *testing.T, p *fixture, page telematics.Page) []telematics.UnknownUnit {
	t.Helper()
	list, err := p.UnknownUnits(t.Context(), page)
	require.NoError(t, err)
	return list
}

func TestUnknownUnits_AreListedUntilTheyHaveAVehicle(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	later := morning.Add(time.Minute)
	note(t, p, telematics.UnknownUnit{Unit: "unit-1", FirstSeen: later, LastSeen: later, Messages: 3})
	// Another instance, to which it sent messages earlier.
	note(t, p, telematics.UnknownUnit{Unit: "unit-1", FirstSeen: morning, LastSeen: morning, Messages: 2})
	list := unknownUnits(t, p, telematics.Page{})
	if len(list) != 1 {
		t.Fatalf("unknown units %+v, want 1", list)
	}
	if want := (telematics.UnknownUnit{No: list[0].No, Unit: "unit-1", FirstSeen: morning, LastSeen: later, Messages: 5}); list[0] != want {
		t.Errorf("unknown unit %+v, want %+v", list[0], want)
	}
	storetest.AddVehicle(t, p.DB, 1)
	assert.EqualSlices(t, unknownUnits(t, p, telematics.Page{}), nil, "a unit with a vehicle is listed as unknown")
	// A unit without a vehicle that still sends messages is unknown again.
	storetest.Exec(t, p.Pool, `update units set vehicle_id = null`)
	if list := unknownUnits(t, p, telematics.Page{}); len(list) != 1 {
		t.Errorf("unknown units %+v, want the one removed from its vehicle", list)
	}
}

func TestUnknownUnits_KeepTheirOrder(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for n := range 5 {
		note(t, p, heardOf(n, 1, morning.Add(time.Duration(n)*time.Second))...)
	}
	first := unknownUnits(t, p, telematics.Page{Limit: 2})
	note(t, p, heardOf(0, 1, morning.Add(time.Hour))...)
	note(t, p, heardOf(9, 1, morning.Add(time.Hour))...)
	rest := unknownUnits(t, p, telematics.Page{Before: first[1].No})
	var units []telematics.Unit
	for _, s := range append(first, rest...) {
		units = append(units, s.Unit)
	}
	assert.DeepEqual(t, units, []telematics.Unit{"s-00004", "s-00003", "s-00002", "s-00001", "s-00000"}, "pages")
}

func TestUnknownUnits_AboveTheLimitTheLeastRecentAreRemoved(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	note(t, p, heardOf(0, telematics.MaxUnknownUnits, morning)...)
	note(t, p, heardOf(3, telematics.MaxUnknownUnits-3, morning.Add(time.Minute))...)
	note(t, p, heardOf(telematics.MaxUnknownUnits, 3, morning.Add(time.Minute))...)
	list := unknownUnits(t, p, telematics.Page{})
	assert.Equal(t, len(list), telematics.MaxUnknownUnits, "unknown units")
	for _, s := range list {
		if s.Unit < "s-00003" {
			t.Errorf("%s is still listed", s.Unit)
		}
	}
}

func TestForgetUnknownUnits_RemovesThoseNotSeenForLong(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	now := time.Now()
	note(t, p, heardOf(0, 3, now.Add(-telematics.UnknownUnitsKeptFor-time.Minute))...)
	note(t, p, heardOf(5, 1, now.Add(-telematics.UnknownUnitsKeptFor+time.Minute))...)
	for _, wantMore := range []bool{true, false} {
		if more, err := ForgetUnknownUnits(t.Context(), p.DB, 2); err != nil || more != wantMore {
			t.Errorf("ForgetUnknownUnits = %v, %v; want %v", more, err, wantMore)
		}
	}
	if list := unknownUnits(t, p, telematics.Page{}); len(list) != 1 || list[0].Unit != "s-00005" {
		t.Errorf("left %+v, want only the recent one", list)
	}
}

func TestStoreUnknownUnits_OfTheSameUnitsConcurrently(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	const instances, rounds, n = 4, 5, 60
	var all sync.WaitGroup
	for range instances {
		all.Go(func() {
			for range rounds {
				assert.NoError(t, p.StoreUnknownUnits(t.Context(), heardOf(0, n, morning)))
			}
		})
	}
	all.Wait()
	list := unknownUnits(t, p, telematics.Page{})
	assert.Equal(t, len(list), n, "unknown units")
	for _, s := range list {
		assert.Equal(t, s.Messages, instances*rounds, "%s: messages", s.Unit)
	}
}
