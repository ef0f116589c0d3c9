package store

import (
	"reflect"
	"strings"
	"testing"

	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestImportingTwiceChangesNothing(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	for _, want := range []Imported{{Agencies: 2, Stations: 5, Vehicles: 10, Units: 10}, {}} {
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
		t.Errorf("Import of nothing = %+v, %v", got, err)
	}
	stations, err := p.Stations(t.Context(), 0)
	if err != nil || !reflect.DeepEqual(stations, file.Stations) {
		t.Errorf("Stations = %+v, %v; want %+v", stations, err, file.Stations)
	}
	if stations, err := p.Stations(t.Context(), 2); err != nil || !reflect.DeepEqual(stations, file.Stations[3:]) {
		t.Errorf("Stations of agency 2 = %+v, %v", stations, err)
	}
}

func TestAUnitMovesWithoutItsContact(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	if _, err := p.Import(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Vehicles {
		presence := telematics.Presence{Status: telematics.Online, Session: "s", At: morning, Firmware: "4.2", Actions: []telematics.Action{}}
		if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: v.Unit, At: morning, Presence: &presence}}); err != nil {
			t.Fatal(err)
		}
	}
	known, err := p.Twin(t.Context(), 4)
	if err != nil || known.Contact.Status != telematics.Online {
		t.Fatalf("%+v, %v", known, err)
	}
	vehicles := file.Vehicles
	vehicles[0].Unit, vehicles[1].Unit = vehicles[1].Unit, vehicles[0].Unit // change places
	retired := vehicles[2].Unit
	vehicles[2].Unit = "new-unit"
	got, err := p.Import(t.Context(), file)
	if want := (Imported{Units: 4}); err != nil || got != want {
		t.Errorf("Import = %+v, %v; want %+v", got, err, want)
	}
	for i, want := range []telematics.Contact{{}, {}, {}, known.Contact} {
		twin, err := p.Twin(t.Context(), vehicles[i].ID)
		if err != nil || twin.Unit != vehicles[i].Unit || !reflect.DeepEqual(twin.Contact, want) {
			t.Errorf("vehicle %d: unit %s, contact %+v, %v; want %s, %+v", vehicles[i].ID, twin.Unit, twin.Contact, err, vehicles[i].Unit, want)
		}
	}
	seen, err := p.Observe(t.Context(), []delivery.Observation{{Unit: retired, At: morning}})
	if err != nil || len(seen.Unknown) != 1 {
		t.Errorf("Observe of a unit that is built in nowhere = %v, %v", seen.Unknown, err)
	}
}

func TestAUnitHasTheProtocolOfItsRecord(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	file.Vehicles[3].Protocol = "tomorrow" // a newer version's
	if _, err := p.Import(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]telematics.Protocol{2: "v1", 3: "tomorrow"} {
		twin, err := p.Twin(t.Context(), file.Vehicles[i].ID)
		if err != nil || twin.Protocol != want {
			t.Errorf("vehicle %d has protocol %q, %v; want %q", twin.ID, twin.Protocol, err, want)
		}
	}
	unit := file.Vehicles[3].Unit
	presence := telematics.Presence{Status: telematics.Online, Session: "s", At: morning}
	if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, Protocol: "tomorrow", At: morning, Presence: &presence}}); err != nil {
		t.Fatal(err)
	}
	file.Vehicles[3].Protocol = "v1"
	if got, err := p.Import(t.Context(), file); err != nil || got != (Imported{Units: 1}) {
		t.Errorf("Import = %+v, %v; want one unit", got, err)
	}
	twin, err := p.Twin(t.Context(), file.Vehicles[3].ID)
	if err != nil || twin.Unit != unit || twin.Protocol != "v1" || twin.Contact.Status != "" {
		t.Errorf("%+v, %v; want protocol v1, and nothing known of the unit's contact", twin, err)
	}
	file.Vehicles[3].Protocol = "Smoke Signals"
	if _, err := p.Import(t.Context(), file); err == nil || !strings.Contains(err.Error(), "units_protocol_form") {
		t.Errorf("Import of what is no name: %v", err)
	}
}

func TestAnImportIsAllOrNothing(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	file.Vehicles[9].AgencyID = 3 // as if the file had not been checked
	if got, err := p.Import(t.Context(), file); err == nil || got != (Imported{}) || unavailable.Is(err) {
		t.Errorf("Import = %+v, %v", got, err)
	}
	if stations, err := p.Stations(t.Context(), 0); err != nil || len(stations) > 0 {
		t.Errorf("Stations = %v, %v", stations, err)
	}
}
