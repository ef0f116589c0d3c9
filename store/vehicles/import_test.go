package vehicles

import (
	"reflect"
	"testing"

	"motorpool/store/storetest"
	"motorpool/store/unavailable"
)

func TestImport_RepeatedChangesNothing(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	for _, want := range []Imported{{Agencies: 2, Tariffs: 1, Rules: 1, Areas: 2, Stations: 5, Vehicles: 12, Units: 12}, {}} {
		got, err := p.Import(t.Context(), file)
		if err != nil || got != want {
			t.Fatalf("Import = %+v, %v; want %+v", got, err, want)
		}
	}
	file.Agencies[1].Name, file.Stations[0].Address, file.Vehicles[4].Color = "Spree", "Elsewhere", "pink"
	got, err := p.Import(t.Context(), file)
	if want := (Imported{Agencies: 1, Stations: 1, Vehicles: 1}); err != nil || got != want {
		t.Errorf("Import of three changes = %+v, %v; want %+v", got, err, want)
	}
	if got, err := p.Import(t.Context(), FleetFile{}); err != nil || got != (Imported{}) {
		t.Errorf("Import of an empty file = %+v, %v; want no change", got, err)
	}
	stations, err := p.Stations(t.Context(), 0)
	if err != nil || !reflect.DeepEqual(stations, file.Stations) {
		t.Errorf("Stations = %+v, %v; want %+v", stations, err, file.Stations)
	}
	if stations, err := p.Stations(t.Context(), 2); err != nil || !reflect.DeepEqual(stations, file.Stations[3:]) {
		t.Errorf("Stations of agency 2 = %+v, %v", stations, err)
	}
}

func TestImport_IsAtomic(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	// An agency that does not exist, as if the file had not been checked.
	file.Vehicles[9].AgencyID = 3
	if got, err := p.Import(t.Context(), file); err == nil || got != (Imported{}) || unavailable.Is(err) {
		t.Errorf("Import = %+v, %v; want an error and no change", got, err)
	}
	if stations, err := p.Stations(t.Context(), 0); err != nil || len(stations) > 0 {
		t.Errorf("Stations = %v, %v; want none", stations, err)
	}
}
