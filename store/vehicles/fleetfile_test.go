package vehicles

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// demoFleet returns the fleet of cmd/dev.
func demoFleet(t *testing.T) FleetFile {
	t.Helper()
	f, err := os.Open("../../cmd/dev/fleet.json")
	require.NoError(t, err)
	defer f.Close()
	file, err := ParseFleetFile(f)
	require.NoError(t, err)
	return file
}

func TestDemoFleet_IsValid(t *testing.T) {
	file := demoFleet(t)
	if len(file.Agencies) != 2 || len(file.Vehicles) != 12 || len(file.Stations) < 4 {
		t.Errorf(
			"%d agencies, %d vehicles, %d stations; want 2, 12, and at least 4", len(file.Agencies), len(file.Vehicles),
			len(file.Stations),
		)
	}
	without := func(actions []telematics.Action, action telematics.Action) []telematics.Action {
		return slices.DeleteFunc(slices.Clone(actions), func(a telematics.Action) bool { return a == action })
	}
	cars := without(telematics.ControlActions, telematics.OpenTopCase)
	for i, v := range file.Vehicles {
		want, agency := cars, telematics.AgencyID(1)
		switch v.ID {
		case 3:
			want = telematics.ControlActions
		case 4:
			want = without(cars, telematics.AttentionSignal)
		case 9:
			agency = 2
		case 11:
			want = []telematics.Action{telematics.Lock, telematics.Unlock}
		}
		if rate, ok := file.Rates[v.ID]; !ok || rate.Hourly < 500 || rate.Deposit < 5_000 {
			t.Errorf("vehicle %d has the rate %+v", v.ID, rate)
		}
		assert.EqualSlices(t, v.Actions, want, "vehicle %d has the capabilities", v.ID)
		if int(v.ID) != i+1 || v.AgencyID != agency || len(v.Unit) != 15 && v.ID != 11 || v.Plate == "" {
			t.Errorf("vehicle %+v is not as expected", v)
		}
	}
}

// withAgency returns a fleet file with one agency and one vehicle, each with additional keys.
func withAgency(agency, vehicle string) string {
	return `{"agencies": [{"id": 1, "code": "MUC", "name": "Isar"` + agency + `}],
		"vehicles": [{"id": 1, "agency_id": 1, "powertrain": "electric", "plate_number": "M 1", "capabilities": []` + vehicle + `}]}`
}

func TestParseFleetFile_ReadsAmountsExactly(t *testing.T) {
	eur := rental.Terms{Currency: "EUR", UnlockGrace: time.Hour, PaymentWait: 10 * time.Minute}
	for _, c := range []struct {
		agency, vehicle string
		terms           rental.Terms
		rate            *rental.Rate
	}{
		{``, ``, eur, nil},
		{`, "currency": null, "tax_percent": null, "buffer_minutes": null`, `, "hourly_rate": null, "deposit": null`, eur, nil},
		{``, `, "hourly_rate": 15, "deposit": 200`, eur, &rental.Rate{Hourly: 1500, Deposit: 20_000}},
		{``, `, "hourly_rate": 15.000, "deposit": 2e2`, eur, &rental.Rate{Hourly: 1500, Deposit: 20_000}},
		{``, `, "hourly_rate": 0.07`, eur, &rental.Rate{Hourly: 7}},
		{``, `, "hourly_rate": 0`, eur, &rental.Rate{}},
		// A float would not hold the digits of its products.
		{``, `, "hourly_rate": 9999999999.99`, eur, &rental.Rate{Hourly: 999_999_999_999}},
		{`, "currency": "JPY", "tax_percent": 10`, `, "hourly_rate": 1500, "deposit": 20000.0`, rental.Terms{
			Currency: "JPY", Tax: 100_000, UnlockGrace: time.Hour, PaymentWait: 10 * time.Minute,
		}, &rental.Rate{Hourly: 1500, Deposit: 20_000}},
		{`, "currency": "BHD", "tax_percent": 8.8755`, `, "hourly_rate": 1.505, "deposit": 20`, rental.Terms{
			Currency: "BHD", Tax: 88_755, UnlockGrace: time.Hour, PaymentWait: 10 * time.Minute,
		}, &rental.Rate{Hourly: 1505, Deposit: 20_000}},
		{`, "tax_percent": 0.0001, "cancel_cutoff_minutes": 1440, "buffer_minutes": 0`, ``, rental.Terms{
			Currency: "EUR", Tax: 1, CancelCutoff: 24 * time.Hour, UnlockGrace: time.Hour, PaymentWait: 10 * time.Minute,
		}, nil},
		{`, "unlock_grace_minutes": 0, "payment_wait_minutes": 0, "fee_limit": 1500.50`, ``, rental.Terms{
			Currency: "EUR", FeeLimit: 150_050,
		}, nil},
		{`, "tax_percent": 100, "buffer_minutes": 527040`, ``, rental.Terms{
			Currency: "EUR", Tax: rental.FullTax, Buffer: rental.MaxLength, UnlockGrace: time.Hour, PaymentWait: 10 * time.Minute,
		}, nil},
	} {
		file, err := ParseFleetFile(strings.NewReader(withAgency(c.agency, c.vehicle)))
		if err != nil {
			t.Errorf("agency %s, vehicle %s: %v", c.agency, c.vehicle, err)
			continue
		}
		rate, rented := file.Rates[1]
		c.terms.Rules = rental.DefaultRules
		if file.Terms[1] != c.terms || rented != (c.rate != nil) || rented && rate != *c.rate {
			t.Errorf("agency %s, vehicle %s: terms %+v, rate %+v", c.agency, c.vehicle, file.Terms[1], rate)
		}
	}
}

func TestParseFleetFile_NamesInvalidAmounts(t *testing.T) {
	for _, c := range []struct{ agency, vehicle, message string }{
		// The rate is not reported: without a currency, its number of decimals is unknown.
		{`, "currency": "eur"`, `, "hourly_rate": 1.505`, `agencies[0].currency: "eur": want an ISO 4217 code such as EUR`},
		{`, "currency": 978`, ``, `agencies[0].currency: 978: want a string` + "\n" +
			`agencies[0].currency: "": want an ISO 4217 code such as EUR`},
		{`, "tax_percent": 101`, ``, `agencies[0].tax_percent: 101: must be at most 100`},
		{`, "tax_percent": 19.00001`, ``, `agencies[0].tax_percent: 19.00001: must have at most 4 decimals`},
		{`, "tax_percent": -1`, ``, `agencies[0].tax_percent: -1: must not be negative`},
		{`, "tax_percent": "19"`, ``, `agencies[0].tax_percent: "19": must be a decimal number such as 12.5`},
		{`, "cancel_cutoff_minutes": -1`, ``, `agencies[0].cancel_cutoff_minutes: -1: want 0 to 527040`},
		{`, "buffer_minutes": 527041`, ``, `agencies[0].buffer_minutes: 527041: want 0 to 527040`},
		{`, "buffer_minutes": 0.5`, ``, `agencies[0].buffer_minutes: 0.5: want a whole number`},
		{`, "best_effort_unlock": "yes"`, ``, `agencies[0].best_effort_unlock: "yes": want one of [deny allow]`},
		{``, `, "hourly_rate": 1.505`, `vehicles[0].hourly_rate: 1.505: must have at most 2 decimals`},
		{
			`, "currency": "JPY"`, `, "hourly_rate": 1500, "deposit": 0.5`,
			`vehicles[0].deposit: 0.5: must be a whole number: JPY has no decimals`,
		},
		{``, `, "hourly_rate": "15"`, `vehicles[0].hourly_rate: "15": must be a decimal number such as 12.5`},
		{``, `, "hourly_rate": {}`, `vehicles[0].hourly_rate: {}: must be a decimal number such as 12.5`},
		{``, `, "hourly_rate": -15`, `vehicles[0].hourly_rate: -15: must not be negative`},
		{``, `, "hourly_rate": 15, "deposit": 1e11`, `vehicles[0].deposit: 1e11: must be at most 10000000000.00`},
		{``, `, "deposit": 200`, `vehicles[0].deposit: needs an hourly_rate: without one the vehicle is not for rent`},
	} {
		file, err := ParseFleetFile(strings.NewReader(withAgency(c.agency, c.vehicle)))
		if err == nil || err.Error() != c.message {
			t.Errorf("agency %s, vehicle %s: error %v, want %s; rates %+v", c.agency, c.vehicle, err, c.message, file.Rates)
		}
	}
}

func TestParseFleetFile_NamesAllProblems(t *testing.T) {
	_, err := ParseFleetFile(strings.NewReader(`{
		"agencies": [{"id": 1, "code": "MUC", "name": "Isar"}, {"id": 1, "code": "MUC", "name": " "}, {"id": -1, "code": "B-R",
		"name": "x"}, 5],
		"stations": [{"id": 9007199254740992, "agency_id": 3, "name": "A", "address": "B", "latitude": 91, "longitude": "x"}],
		"vehicles": [
			{"id": 1, "agency_id": 1, "unit": "86 1", "protocol": "smoke", "status": "lost", "powertrain": "steam", "plate_number": "M 1",
			"year": 1700,
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
		"agencies[2].id: -1: want 1 to 9007199254740991",
		`agencies[2].code: "B-R": want 1 to 16 letters and digits`,
		"agencies[3]: want an object",
		"stations[0].id: 9007199254740992: want 1 to 9007199254740991",
		"stations[0].latitude: 91: want -90 to 90",
		`stations[0].longitude: "x": want a number`,
		`vehicles[0].unit: unit serial "86 1": want 1 to 64 letters, digits, - or _`,
		fmt.Sprintf(`vehicles[0].protocol: "smoke": want one of %v`, dialects.Spoken.Names()),
		`vehicles[0].status: "lost": want one of [available booked in_use maintenance inactive]`,
		`vehicles[0].powertrain: "steam": want one of [combustion electric plug_in_hybrid]`,
		"vehicles[0].year: 1700: want 1886 to 2100",
		`vehicles[0].features: ["", 1]: want a list of strings`,
		`vehicles[0].image: "file:///etc/passwd": want an http or https address`,
		`vehicles[0].capabilities: "fly": want some of [lock unlock enable-driving disable-driving unlock-and-enable-driving ` +
			`lock-and-disable-driving attention open-top-case]`,
		`vehicles[0].capabilities: "lock" comes twice`,
		"vehicles[0].wheels: unknown key",
		"vehicles[1].agency_id: missing",
		"vehicles[1].powertrain: missing; want one of [combustion electric plug_in_hybrid]",
		"vehicles[1].plate_number: missing",
		"vehicles[1].features[0]: empty",
		"vehicles[1].capabilities: missing",
		"vehicles[2].plate_number: longer than 1024 bytes, or not clean UTF-8",
		"vehicles[2].model: 7: want a string",
		"bikes: unknown key",
		"agencies[1]: id 1 is that of agencies[0]",
		"agencies[1]: code MUC is that of agencies[0]",
		"stations[0].agency_id: there is no agency 3",
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

func TestFleetFile_WhatIsLeftOutHasADefault(t *testing.T) {
	for said, want := range map[string]bool{
		``: false, `, "best_effort_unlock": null`: false, `, "best_effort_unlock": "deny"`: false, `, "best_effort_unlock": "allow"`: true,
	} {
		file, err := ParseFleetFile(strings.NewReader(withAgency(said, "")))
		if err != nil || file.Agencies[0].BestEffortUnlock != want {
			t.Errorf("%s: %+v, %v; want %t", said, file.Agencies, err, want)
		}
		if v := file.Vehicles[0]; v.Status != telematics.Available || v.Unit != "" || v.Features == nil || len(v.Features) != 0 {
			t.Errorf("vehicle %+v, want available, without a unit and features", v)
		}
	}
}

func TestParseFleetFile_TextsArePrintable(t *testing.T) {
	const evil = `M\u202e-IM\u001b[2J\u200b 1`
	file, err := ParseFleetFile(strings.NewReader(`{"agencies":[{"id":1,"code":"MUC","name":"` + evil + `"}],
		"stations":[{"id":1,"agency_id":1,"name":"` + evil + `","address":"` + evil + `","latitude":48,"longitude":11}],
		"vehicles":[{"id":1,"agency_id":1,"powertrain":"electric","capabilities":["lock"],"plate_number":"` + evil + `","brand":"` + evil +
		`","model":"` + evil +
		`","color":"` + evil + `","category":"` + evil + `","features":["` + evil + `"]}]}`))
	require.NoError(t, err)
	v, s := file.Vehicles[0], file.Stations[0]
	for i, text := range append([]string{file.Agencies[0].Name, s.Name, s.Address, v.Plate, v.Brand, v.Model, v.Color, v.Category},
		v.Features...) {
		assert.Equal(t, text, "M-IM [2J 1", "text %d", i)
	}
	if _, err := ParseFleetFile(strings.NewReader(`{"vehicles":[{"id":1,"agency_id":1,"powertrain":"electric","capabilities":[],` +
		`"plate_number":"\u202e"}]}`)); err == nil ||
		!strings.Contains(err.Error(), "plate_number: empty") {
		t.Errorf("a plate of which nothing is seen: %v, want a problem", err)
	}
}
