package store

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"motorpool/telematics"
)

// demoFleet returns the fleet of cmd/dev.
func demoFleet(t *testing.T) FleetFile {
	t.Helper()
	f, err := os.Open("../cmd/dev/fleet.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := ParseFleetFile(f)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheDemoFleetIsSound(t *testing.T) {
	file := demoFleet(t)
	if len(file.Agencies) != 2 || len(file.Vehicles) != 10 || len(file.Stations) < 4 {
		t.Errorf("%d agencies, %d vehicles, %d stations", len(file.Agencies), len(file.Vehicles), len(file.Stations))
	}
	cars := slices.DeleteFunc(slices.Clone(telematics.ControlActions), func(a telematics.Action) bool { return a == telematics.OpenTopCase })
	for i, v := range file.Vehicles {
		want, agency := cars, telematics.AgencyID(1)
		switch v.ID {
		case 3:
			want = telematics.ControlActions
		case 4:
			want = cars[:len(cars)-1] // no attention
		case 9:
			agency = 2
		}
		if int(v.ID) != i+1 || v.AgencyID != agency || !slices.Equal(v.Actions, want) || len(v.Unit) != 15 || v.Plate == "" {
			t.Errorf("vehicle %+v", v)
		}
	}
}

func TestAFleetFileNamesAllItsProblemsAtOnce(t *testing.T) {
	_, err := ParseFleetFile(strings.NewReader(`{
		"agencies": [{"id": 1, "code": "MUC", "name": "Isar"}, {"id": 1, "code": "MUC", "name": " "}, {"id": -1, "code": "B-R", "name": "x"}, 5],
		"stations": [{"id": 1, "agency_id": 3, "name": "A", "address": "B", "latitude": 91, "longitude": "x"}],
		"vehicles": [
			{"id": 1, "agency_id": 1, "unit": "86 1", "protocol": "smoke", "status": "lost", "powertrain": "steam", "plate_number": "M 1", "year": 1700,
			 "image": "file:///etc/passwd", "features": ["", 1], "capabilities": ["lock", "fly", "lock"], "wheels": 4},
			{"id": 2, "unit": "U", "powertrain": null, "features": [""]},
			{"id": 2, "agency_id": 1, "unit": "U", "powertrain": "electric", "plate_number": "\u0000", "capabilities": [], "model": 7}
		],
		"bikes": []}`))
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		"agencies[1].name: empty",
		"agencies[2].id: -1: want a positive number",
		`agencies[2].code: "B-R": want 1 to 16 letters and digits`,
		"agencies[3]: want an object",
		"stations[0].latitude: 91: want -90 to 90",
		`stations[0].longitude: "x": want a number`,
		`vehicles[0].unit: unit serial "86 1": want 1 to 64 letters, digits, - or _`,
		fmt.Sprintf(`vehicles[0].protocol: "smoke": want one of %v`, telematics.Spoken.Names()),
		`vehicles[0].status: "lost": want one of [available booked in_use maintenance inactive]`,
		`vehicles[0].powertrain: "steam": want one of [combustion electric plug_in_hybrid]`,
		"vehicles[0].year: 1700: want 1886 to 2100",
		`vehicles[0].features: ["", 1]: want a list of strings`,
		`vehicles[0].image: "file:///etc/passwd": want an http or https address`,
		`vehicles[0].capabilities: "fly": want some of [lock unlock enable-driving disable-driving unlock-and-enable-driving lock-and-disable-driving attention open-top-case]`,
		`vehicles[0].capabilities: "lock" comes twice`,
		"vehicles[0].wheels: unknown key",
		"vehicles[1].agency_id: missing",
		"vehicles[1].powertrain: missing; want one of [combustion electric plug_in_hybrid]",
		"vehicles[1].plate_number: missing",
		"vehicles[1].features[0]: empty, longer than 1024 bytes, or not clean UTF-8",
		"vehicles[1].capabilities: missing",
		"vehicles[2].plate_number: longer than 1024 bytes, or not clean UTF-8",
		"vehicles[2].model: 7: want a string",
		"bikes: unknown key",
		"agencies[1]: id 1 is that of agencies[0]",
		"agencies[1]: code MUC is that of agencies[0]",
		"stations[0].agency_id: there is no agency 3 in this file",
		"vehicles[2]: id 2 is that of vehicles[1]",
		"vehicles[2]: unit U is that of vehicles[1]",
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("unexpected: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("missing:    %s", line)
		}
	}
}

func TestWhatIsNoFleetFileIsRefused(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "null", `{} {}`, `{"agencies": {}}`} {
		if file, err := ParseFleetFile(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read as %+v", text, file)
		}
	}
}

func TestAVehicleNeedsFewWords(t *testing.T) {
	file, err := ParseFleetFile(strings.NewReader(`{"agencies": [{"id": 1, "code": "MUC", "name": "Isar"}],
		"vehicles": [{"id": 1, "agency_id": 1, "powertrain": "electric", "plate_number": "M 1", "capabilities": ["lock"], "image": null}]}`))
	if err != nil {
		t.Fatal(err)
	}
	v := file.Vehicles[0]
	if v.Status != telematics.Available || v.Unit != "" || v.Features == nil || len(v.Features) != 0 {
		t.Errorf("vehicle %+v", v)
	}
}
