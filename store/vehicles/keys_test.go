package vehicles

import (
	"reflect"
	"testing"

	"github.com/lib/pq"

	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestKeyHolders_CountUnitsOfVehiclesByReportedKeys(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	var units []telematics.Unit
	for _, keys := range [][]string{{"k1"}, {"k1", "k2"}, {"k0", "k1"}, nil, nil, {}} {
		_, unit := add()
		units = append(units, unit)
		storetest.Exec(t, p.Pool, `update units set keys = $2 where serial = $1`, unit, pq.Array(keys))
	}
	// A unit without a vehicle does not count.
	storetest.Exec(t, p.Pool, `insert into units (serial, keys) values ('a-spare', '{k2}')`)
	for key, want := range map[string]telematics.KeyHolders{
		"k1": {Holding: 3, Missing: 1, Unreported: 2, MissingUnits: units[5:]},
		"k2": {Holding: 1, Missing: 3, Unreported: 2, MissingUnits: []telematics.Unit{units[0], units[2], units[5]}},
		"%":  {Missing: 4, Unreported: 2, MissingUnits: []telematics.Unit{units[0], units[1], units[2], units[5]}},
	} {
		got, err := p.KeyHolders(t.Context(), key)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("key %s: %+v, %v; want %+v", key, got, err, want)
		}
	}
}

func TestKeyHolders_NamesALimitedNumberOfUnitsWithoutTheKey(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	if got, err := p.KeyHolders(t.Context(), "k1"); err != nil || !reflect.DeepEqual(got, telematics.KeyHolders{}) {
		t.Errorf("without units: %+v, %v; want none", got, err)
	}
	add := storetest.Vehicles(t, p.DB)
	for range telematics.MaxMissingUnits + 1 {
		add()
	}
	storetest.Exec(t, p.Pool, `update units set keys = '{k0}'`)
	got, err := p.KeyHolders(t.Context(), "k1")
	if err != nil || got.Missing != telematics.MaxMissingUnits+1 || len(got.MissingUnits) != telematics.MaxMissingUnits {
		t.Errorf("%+v, %v; want the count of all and the names of the first", got, err)
	}
}
