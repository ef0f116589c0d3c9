package vehicles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// wholeFleet says each field of an agency, a station and a vehicle, with values that are not those
// of an absent field. Vehicle 2 has few fields.
const wholeFleet = `{
	"agencies": [
		{"id": 1, "code": "MUC", "name": "Isar Mobility", "currency": "CHF", "tax_percent": 19, "cancel_cutoff_minutes": 60,
		"unlock_grace_minutes": 30,
		 "payment_wait_minutes": 5, "best_effort_unlock": "allow", "fee_limit": 500, "buffer_minutes": 15},
		{"id": 2, "code": "BER", "name": "Spree"}],
	"stations": [{"id": 1, "agency_id": 1, "name": "Hauptbahnhof", "address": "Arnulfstr. 1", "latitude": 48.14, "longitude": 11.56}],
	"vehicles": [
		{"id": 1, "agency_id": 1, "unit": "U1", "protocol": "teltonika", "installation": {"lock": "output 1 on", "unlock": "output 1 off"},
		"status": "maintenance", "powertrain": "electric",
		 "plate_number": "M-IM 1", "brand": "Renault", "model": "Zoe", "year": 2024, "color": "white", "category": "compact",
		 "image": "https://example.com/zoe.png",
		 "features": ["navigation"], "capabilities": ["lock", "unlock"], "hourly_rate": 24, "deposit": 200},
		{"id": 2, "agency_id": 2, "powertrain": "combustion", "plate_number": "B-SM 2", "capabilities": ["lock"], "hourly_rate": 10}]}`

// change imports a fleet file, and returns what it changes in words.
func change(t *testing.T, p *fixture, file string) []string {
	t.Helper()
	plan, err := tryPlan(p, t, file)
	require.NoError(t, err, "%s", file)
	if _, err := p.Apply(t.Context(), plan, telematics.OperatorAt("eva")); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return Sentences(plan.Differences)
}

func tryPlan(p *fixture, t *testing.T, file string) (FleetPlan, error) {
	changes, err := ReadFleetFile(strings.NewReader(file))
	if err != nil {
		return FleetPlan{}, err
	}
	return p.Plan(t.Context(), changes)
}

// refused checks that a fleet file is refused with exactly these problems.
func refused(t *testing.T, p *fixture, file string, want ...string) {
	t.Helper()
	_, err := tryPlan(p, t, file)
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("%s:\ngot  %v\nwant %s", file, err, strings.Join(want, "\n"))
	}
}

// onRecord returns all that a fleet file can set.
func onRecord(t *testing.T, p *fixture) record {
	t.Helper()
	changes, err := ReadFleetFile(strings.NewReader(`{"agencies":[{"id":1},{"id":2},{"id":3}],"stations":[{"id":1},{"id":2}],
		"vehicles":[{"id":1,"unit":"U1"},{"id":2,"unit":"U2"},{"id":3}]}`))
	require.NoError(t, err)
	on, err := readRecord(t.Context(), p.Pool, changes)
	require.NoError(t, err)
	return on
}

// What is printed and recorded for people has no PIN, but says that it is another one.
func TestChanges_HaveNoSecrets(t *testing.T) {
	p := withWholeFleet(t)
	for _, c := range []struct{ installation, want string }{
		{`"protocol": "ovms", "installation": {"type": "NL", "pin": "4711"}`, "vehicle 1: protocol teltonika → ovms vehicle 1: " +
			"installation lock output 1 on, unlock output 1 off → pin (not shown), type NL"},
		{
			`"installation": {"type": "NL", "pin": "4712"}`,
			"vehicle 1: installation pin (not shown), type NL → pin (not shown), type NL, another secret",
		},
		{`"installation": {"type": "KN", "pin": "4713"}`, "vehicle 1: installation pin (not shown), type NL → pin (not shown), type KN"},
		{`"installation": {"type": "KN", "pin": "4713"}`, ""},
	} {
		if got := strings.Join(change(t, p, `{"vehicles":[{"id":1, `+c.installation+`}]}`), " "); got != c.want {
			t.Errorf("%s: changes %q, want %q", c.installation, got, c.want)
		}
	}
}

// An import is one entry of the audit log, also one that ends early or changes nothing.
func TestImport_IsOneEntryOfTheAuditLog(t *testing.T) {
	p := withWholeFleet(t)
	const file = `{"agencies":[{"id":1,"name":"Isar"}],"vehicles":[{"id":1,"unit":"U7"},{"id":2,"color":"red"}]}`
	for range 2 {
		change(t, p, file)
	}
	plan, err := tryPlan(p, t, `{"vehicles":[{"id":2,"color":"blue"}]}`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Apply(ctx, plan, telematics.OperatorAt("ben")); !errors.Is(err, context.Canceled) {
		t.Errorf("an import that is interrupted: %v", err)
	}
	entries, err := activity.New(p.DB).Activities(t.Context(), telematics.ActivityQuery{Action: telematics.FleetImport})
	require.NoError(t, err)
	var got []string
	for _, e := range slices.Backward(entries) {
		got = append(got, fmt.Sprint(e.Actor.Subject, " ", e.Actor.Role, " ", e.Outcome, " ", e.Details))
		if since := time.Since(e.At); since < 0 || since > time.Minute {
			t.Errorf("the entry is of %v", e.At)
		}
	}
	want := []string{
		"eva system executed map[agencies:2 areas:0 rental_rules:0 stations:1 tariffs:0 units:1 vehicles:2]",
		"eva system executed map[agencies:1 areas:0 rental_rules:0 stations:0 tariffs:0 units:2 vehicles:1]",
		"eva system executed map[agencies:0 areas:0 rental_rules:0 stations:0 tariffs:0 units:0 vehicles:0]",
		"ben system failed map[agencies:0 areas:0 rental_rules:0 stations:0 tariffs:0 units:0 vehicles:0]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("entries\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestImport_ATakenCodeNamesItsAgency(t *testing.T) {
	p := withWholeFleet(t)
	const taken = "agencies[0].code: MUC is the code of agency 1: choose another one, or give that agency another one first, " +
		"by an import before this one"
	refused(t, p, `{"agencies":[{"id":3,"code":"MUC","name":"Lech"}]}`, taken)
	refused(t, p, `{"agencies":[{"id":2,"code":"MUC"}]}`, taken)
	change(t, p, `{"agencies":[{"id":1,"code":"MUE"}]}`)
	assert.EqualSlices(t, change(t, p, `{"agencies":[{"id":2,"code":"MUC"}]}`), []string{"agency 2: code BER → MUC"}, "changes")
}

// The words of a change say what becomes of the record. A vehicle that is booked stays so.
func TestChanges_OfAStatusAreThoseThatBookingsLeave(t *testing.T) {
	p := withWholeFleet(t)
	change(
		t, p,
		`{"stations":[{"id":2,"agency_id":1,"name":"Ost","address":"Orleansplatz 1","latitude":48.1,"longitude":11.6}],`+
			`"vehicles":[{"id":1,"status":"available"}]}`,
	)
	putBooking(t, p, 1, 0, "active")
	storetest.Exec(t, p.Pool, `update vehicles set status = 'in_use' where id = 1`)
	for _, c := range []struct{ status, want string }{
		{"available", ""}, {"booked", ""}, {"maintenance", "vehicle 1: status in_use → maintenance"},
		{"available", "vehicle 1: status maintenance → in_use"},
	} {
		if got := strings.Join(change(t, p, fmt.Sprintf(`{"vehicles":[{"id":1,"status":%q}]}`, c.status)), " "); got != c.want {
			t.Errorf("%s: changes %q, want %q", c.status, got, c.want)
		}
	}
}

// Ü may be one character or two, and is the same letter. A category with a space after it would
// have no tariff.
func TestChanges_TextsHaveOneSpelling(t *testing.T) {
	p := withWholeFleet(t)
	const composed, decomposed = "M\u00dc-A 1", "MU\u0308-A 1"
	if got, want := change(t, p, `{"vehicles":[{"id":1,"plate_number":"`+decomposed+`"}]}`),
		[]string{"vehicle 1: plate number M-IM 1 → " + composed}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	for _, plate := range []string{composed, decomposed} {
		if got := change(t, p, `{"vehicles":[{"id":1,"plate_number":"`+plate+`"}]}`); got != nil {
			t.Errorf("the same plate: changes %q", got)
		}
	}
	for _, category := range []string{"compact ", "\\tcompact", " compact\u200b "} {
		if got := change(t, p, `{"vehicles":[{"id":1,"category":"`+category+`","features":["`+" navigation"+`"]}]}`); got != nil {
			t.Errorf("category %q: changes %q", category, got)
		}
	}
	change(t, p, `{"agencies":[{"id":1,"tariffs":{"compact":{"per_hour":9}}}]}`)
	if got := change(t, p, `{"agencies":[{"id":1,"tariffs":{" compact":{"per_hour":9}}}]}`); got != nil {
		t.Errorf("the same tariff: changes %q", got)
	}
	refused(t, p, `{"vehicles":[{"id":1,"features":[" ","\u200b"]}]}`, "vehicles[0].features[0]: empty", "vehicles[0].features[1]: empty")
}

func TestRate_IsThatOfTheFleetFile(t *testing.T) {
	p := withWholeFleet(t)
	change(t, p, `{"vehicles":[{"id":2,"hourly_rate":null}]}`)
	if rate, currency, err := p.Rate(t.Context(), 1); err != nil || currency != "CHF" ||
		*rate != (rental.Rate{Hourly: 2400, Deposit: 20000}) {
		t.Errorf("vehicle 1 costs %+v %s, %v", rate, currency, err)
	}
	if rate, currency, err := p.Rate(t.Context(), 2); err != nil || currency != "EUR" || rate != nil {
		t.Errorf("vehicle 2, which is not for rent, costs %+v %s, %v", rate, currency, err)
	}
	var missing *telematics.Error
	if _, _, err := p.Rate(t.Context(), 7); !errors.As(err, &missing) || missing.Code != telematics.VehicleNotFound {
		t.Errorf("a vehicle that is not on record: %v", err)
	}
}

func withWholeFleet(t *testing.T) *fixture {
	p := open(t, storetest.NewDatabase(t))
	change(t, p, wholeFleet)
	return p
}

// fields returns the names of the fields of an object of wholeFleet other than its id, and which of
// them it needs.
func fields(kind string) (optional, needed []string) {
	switch kind {
	case "agencies":
		return []string{
				"currency", "tax_percent", "cancel_cutoff_minutes", "unlock_grace_minutes", "payment_wait_minutes",
				"best_effort_unlock", "fee_limit", "buffer_minutes",
			},
			[]string{
				"code", "name",
			}
	case "stations":
		return nil, []string{"agency_id", "name", "address", "latitude", "longitude"}
	}
	return []string{
			"unit", "protocol", "installation", "status", "reason", "until", "brand", "model", "year", "color", "category", "image",
			"features", "hourly_rate", "deposit",
		},
		[]string{
			"agency_id", "powertrain", "plate_number", "capabilities",
		}
}

func TestImport_AbsentFieldsStayAsTheyAre(t *testing.T) {
	p := withWholeFleet(t)
	before := onRecord(t, p)
	if got := change(t, p, `{"agencies":[{"id":1},{"id":2}],"stations":[{"id":1}],"vehicles":[{"id":1},{"id":2}]}`); got != nil {
		t.Errorf("changes: %q", got)
	}
	assert.DeepEqual(t, onRecord(t, p), before, "on record")
	// An agency with only its needed fields, and a new vehicle.
	got := change(t, p, `{"agencies":[{"id":1,"code":"MUC","name":"Isar Mobility"}],
		"vehicles":[{"id":3,"agency_id":1,"powertrain":"electric","plate_number":"M-IM 3","capabilities":["lock"]}]}`)
	if want := []string{
		"vehicle 3: new: agency 1, plate number M-IM 3, status available, powertrain electric, capabilities lock",
	}; !slices.Equal(got, want) {
		t.Errorf("changes: %q, want %q", got, want)
	}
	assert.DeepEqual(t, onRecord(t, p).agencies, before.agencies, "agencies on record")
}

func TestImport_EachFieldCanBeSetAlone(t *testing.T) {
	p := withWholeFleet(t)
	for _, c := range []struct{ kind, field, value, want string }{
		{"agencies", "code", `"MUE"`, "agency 1: code MUC → MUE"},
		{"agencies", "name", `"Isar"`, "agency 1: name Isar Mobility → Isar"},
		{"agencies", "tax_percent", `7.7`, "agency 1: tax 19 % → 7.7 %"},
		{"agencies", "cancel_cutoff_minutes", `90`, "agency 1: cancel cutoff 60 min → 90 min"},
		{"agencies", "unlock_grace_minutes", `0`, "agency 1: unlock grace 30 min → 0 min"},
		{"agencies", "payment_wait_minutes", `6`, "agency 1: payment wait 5 min → 6 min"},
		{"agencies", "best_effort_unlock", `"deny"`, "agency 1: best effort unlock allow → deny"},
		{"agencies", "fee_limit", `501.5`, "agency 1: fee limit 500.00 CHF → 501.50 CHF"},
		{"agencies", "buffer_minutes", `20`, "agency 1: buffer 15 min → 20 min"},
		{"stations", "agency_id", `2`, "station 1: agency 1 → 2"},
		{"stations", "name", `"Ost"`, "station 1: name Hauptbahnhof → Ost"},
		{"stations", "address", `"Orleansplatz"`, "station 1: address Arnulfstr. 1 → Orleansplatz"},
		{"stations", "latitude", `48.2`, "station 1: latitude 48.14 → 48.2"},
		{"stations", "longitude", `11.6`, "station 1: longitude 11.56 → 11.6"},
		{"vehicles", "unit", `"U3"`, "vehicle 1: unit U1 → U3"},
		{"vehicles", "installation", `{"lock": "output 3 on", "unlock": "output 1 off"}`, "vehicle 1: installation lock output 1 on, " +
			"unlock output 1 off → lock output 3 on, unlock output 1 off"},
		{"vehicles", "reason", `"brakes"`, "vehicle 1: reason none → brakes"},
		{"vehicles", "until", `"2126-12-01T18:00:00+01:00"`, "vehicle 1: until none → 2126-12-01T17:00:00Z"},
		{"vehicles", "status", `"available"`, "vehicle 1: status maintenance → available; vehicle 1: reason brakes → none; " +
			"vehicle 1: until 2126-12-01T17:00:00Z → none"},
		{"vehicles", "powertrain", `"combustion"`, "vehicle 1: powertrain electric → combustion"},
		{"vehicles", "plate_number", `"M-IM 9"`, "vehicle 1: plate number M-IM 1 → M-IM 9"},
		{"vehicles", "brand", `"VW"`, "vehicle 1: brand Renault → VW"},
		{"vehicles", "model", `"Up"`, "vehicle 1: model Zoe → Up"},
		{"vehicles", "year", `2025`, "vehicle 1: year 2024 → 2025"},
		{"vehicles", "color", `"red"`, "vehicle 1: color white → red"},
		{"vehicles", "category", `"mini"`, "vehicle 1: category compact → mini"},
		{"vehicles", "image", `"https://example.com/up.png"`, "vehicle 1: image https://example.com/zoe.png → https://example.com/up.png"},
		{"vehicles", "features", `["isofix", "navigation"]`, "vehicle 1: features navigation → isofix, navigation"},
		{"vehicles", "capabilities", `["unlock"]`, "vehicle 1: capabilities lock, unlock → unlock"},
		{"vehicles", "hourly_rate", `25`, "vehicle 1: hourly rate 24.00 CHF → 25.00 CHF"},
		{"vehicles", "deposit", `250`, "vehicle 1: deposit 200.00 CHF → 250.00 CHF"},
		{"vehicles", "protocol", `"v1", "installation": null`, "vehicle 1: protocol teltonika → v1; vehicle 1: " +
			"installation lock output 3 on, unlock output 1 off → none"},
	} {
		file := fmt.Sprintf(`{%q: [{"id": 1, %q: %s}]}`, c.kind, c.field, c.value)
		assert.Equal(t, strings.Join(change(t, p, file), "; "), c.want, "%s changes", file)
		if got := change(t, p, file); got != nil {
			t.Errorf("%s again changes %q", file, got)
		}
	}
}

func TestImport_NullClearsAField(t *testing.T) {
	p := withWholeFleet(t)
	cleared := map[string]string{
		"currency": "EUR", "tax_percent": "0 %", "cancel_cutoff_minutes": "0 min",
		"unlock_grace_minutes": "60 min", "payment_wait_minutes": "10 min", "best_effort_unlock": "deny",
		"buffer_minutes": "0 min", "protocol": "v1", "status": "available",
	}
	for _, kind := range []string{"agencies", "stations", "vehicles"} {
		optional, needed := fields(kind)
		for _, field := range needed {
			place := fmt.Sprintf("%s[0].%s: cannot be cleared", kind, field)
			if field == "powertrain" {
				place += "; want one of [combustion electric plug_in_hybrid]"
			}
			refused(t, p, fmt.Sprintf(`{%q: [{"id": 1, %q: null}]}`, kind, field), place)
		}
		if kind == "stations" {
			continue
		}
		nulls := map[string]string{"id": "1"}
		for _, field := range optional {
			nulls[field] = "null"
		}
		delete(nulls, "currency") // see TestImport_CurrencyChanges
		var members []string
		for _, field := range slices.Sorted(maps.Keys(nulls)) {
			members = append(members, fmt.Sprintf("%q: %s", field, nulls[field]))
		}
		change(t, p, fmt.Sprintf(`{%q: [{%s}]}`, kind, strings.Join(members, ",")))
		on := onRecord(t, p)
		described := on.agencies[1].described()
		if kind == "vehicles" {
			described = on.vehicles[1].described("CHF")
		}
		for _, f := range described {
			if _, set := nulls[f.field]; !set {
				continue
			}
			want := cleared[f.field]
			if f.field == "protocol" {
				want = "" // there is no unit any more
			}
			if f.value != want {
				t.Errorf("%s %s is %q after null, want %q", kind, f.field, f.value, want)
			}
		}
	}
}

func TestImport_StatusStaysThatOfNow(t *testing.T) {
	p := withWholeFleet(t)
	change(t, p, `{"vehicles":[{"id":1,"status":"available"}]}`)
	changes, err := ReadFleetFile(strings.NewReader(`{"vehicles":[{"id":1,"color":"red"}]}`))
	require.NoError(t, err)
	plan, err := p.Plan(t.Context(), changes)
	require.NoError(t, err)
	// Another import, meanwhile.
	change(t, p, `{"vehicles":[{"id":1,"status":"maintenance","brand":"VW"}]}`)
	_, err = p.Apply(t.Context(), plan, telematics.OperatorAt("eva"))
	require.NoError(t, err)
	if v := onRecord(t, p).vehicles[1]; v.Status != telematics.Maintenance || v.Brand != "VW" || v.Color != "red" {
		t.Errorf("vehicle 1 is %+v, want what both files say", v)
	}
}

func TestImport_SaysTaxesAsTheyAre(t *testing.T) {
	p := withWholeFleet(t)
	change(t, p, `{"agencies":[{"id":1,"tax_percent":0}]}`)
	was := "0"
	for _, tax := range []string{"7", "0.0001", "5.5", "100", "19.0705"} {
		equal(t, "changes", change(t, p, `{"agencies":[{"id":1,"tax_percent":`+tax+`}]}`), []string{
			"agency 1: tax " + was + " % → " + tax + " %",
		})
		was = tax
	}
}

func TestImport_CurrencyChanges(t *testing.T) {
	p := withWholeFleet(t)
	storetest.Exec(t, p.Pool, `insert into stations (id, agency_id, name, address, latitude, longitude) values (2, 1, 'B', 'B', 48, 11)`)
	putBooking(t, p, 1, 5, "upcoming") // which keeps its currency
	const priced = "agencies[0].currency: CHF → JPY: there are prices in CHF; remove them by an import before this one: " +
		"hourly_rate of its vehicles, tariffs and fee_limit null"
	refused(t, p, `{"agencies":[{"id":1,"currency":"JPY"}],"vehicles":[{"id":1,"hourly_rate":2400,"deposit":20000}]}`, priced)
	change(t, p, `{"agencies":[{"id":1,"fee_limit":null}],"vehicles":[{"id":1,"hourly_rate":null,"deposit":null}]}`)
	// A price that is set between the plan and the import.
	const inYen = `{"agencies":[{"id":1,"currency":"JPY","fee_limit":90000}],"vehicles":[{"id":1,"hourly_rate":2400,"deposit":20000}]}`
	plan, err := tryPlan(p, t, inYen)
	require.NoError(t, err)
	storetest.Exec(t, p.Pool, `update vehicles set hourly_rate = 1000 where id = 1`)
	if _, err := p.Apply(t.Context(), plan, telematics.OperatorAt("test")); err == nil || !strings.Contains(err.Error(), priced) {
		t.Errorf("with a price that was set meanwhile: %v", err)
	}
	storetest.Exec(t, p.Pool, `update vehicles set hourly_rate = null where id = 1`)
	got := change(t, p, inYen)
	if want := []string{
		"agency 1: currency CHF → JPY", "agency 1: fee limit none → 90000 JPY",
		"vehicle 1: hourly rate none → 2400 JPY", "vehicle 1: deposit none → 20000 JPY",
	}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	if v := onRecord(t, p).vehicles[1]; v.rate == nil || *v.rate != (rental.Rate{Hourly: 2400, Deposit: 20_000}) {
		t.Errorf("vehicle 1 costs %+v", v.rate)
	}
	// A vehicle that comes to an agency with another currency.
	refused(
		t, p, `{"vehicles":[{"id":2,"agency_id":1}]}`,
		"vehicles[0].hourly_rate: is 10.00 EUR: name it in JPY, the currency of the agency",
	)
}

func TestImport_UnitsThatMove(t *testing.T) {
	p := withWholeFleet(t)
	// A unit keeps what it speaks.
	if got, want := change(t, p, `{"vehicles":[{"id":2,"unit":"U1"}]}`), []string{
		"vehicle 2: unit none → U1", "vehicle 2: protocol none → teltonika",
		"vehicle 2: installation none → lock output 1 on, unlock output 1 off", "vehicle 1: unit U1 → none",
	}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	change(t, p, `{"vehicles":[{"id":1,"unit":"U2"}]}`)
	on := onRecord(t, p)
	if on.vehicles[1].Unit != "U2" || on.vehicles[1].Protocol != "v1" || on.vehicles[2].Unit != "U1" ||
		on.vehicles[2].Protocol != "teltonika" {
		t.Errorf("vehicles %+v", on.vehicles)
	}
	// What both spoke differs.
	refused(
		t, p, `{"vehicles":[{"id":1,"unit":"U1"}]}`,
		"vehicles[0].protocol: must be said: that of unit U1 differs from that of unit U2, which it replaces",
	)
	change(
		t, p,
		`{"vehicles":[{"id":1,"unit":"U1","protocol":"teltonika","installation":{"lock":"output 1 on","unlock":"output 1 off"}},{"id":2}]}`,
	)
	if on := onRecord(t, p); on.vehicles[1].Unit != "U1" || on.vehicles[2].Unit != "" {
		t.Errorf("vehicles %+v, want unit U1 in vehicle 1 alone", on.vehicles)
	}
	refused(t, p, `{"vehicles":[{"id":1,"unit":"U9"},{"id":2,"unit":"U9"}]}`, "vehicles[1]: unit U9 is that of vehicles[0]")
	refused(
		t, p, `{"vehicles":[{"id":2,"unit":"U 2"},{"id":3}]}`,
		`vehicles[0].unit: unit serial "U 2": want 1 to 64 letters, digits, - or _`, "vehicles[1].agency_id: missing",
		"vehicles[1].powertrain: missing; want one of [combustion electric plug_in_hybrid]",
		"vehicles[1].plate_number: missing", "vehicles[1].capabilities: missing",
	)
}

// A transaction of an import reads no more than what it writes: with the units of the whole file,
// an import would take as long as the square of its vehicles.
func TestImport_UnitsMoveBetweenItsTransactions(t *testing.T) {
	p := withWholeFleet(t)
	const last = importBatch + 1
	file := func(first, end string) string {
		var list []string
		for id := 1; id <= last; id++ {
			unit := map[int]string{1: first, last: end}[id]
			list = append(list, fmt.Sprintf(`{"id":%d,"agency_id":1,"powertrain":"electric","plate_number":"M %[1]d",
				"capabilities":["lock"],"hourly_rate":null%s}`, id, unit))
		}
		return `{"vehicles":[` + strings.Join(list, ",") + `]}`
	}
	change(t, p, file(`,"unit":"U1"`, `,"unit":"U2"`))
	const teltonika = `,"protocol":"teltonika","installation":{"lock":"output 1 on","unlock":"output 1 off"}`
	swapped := file(`,"unit":"U2","protocol":"v1","installation":null`, `,"unit":"U1"`+teltonika)
	change(t, p, swapped)
	for id, want := range map[telematics.VehicleID]telematics.Unit{1: "U2", last: "U1"} {
		v, err := p.Record(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, v.Unit, want, "the unit of vehicle %d", id)
	}
	if got := change(t, p, swapped); got != nil {
		t.Errorf("the same file again changes %q", got)
	}
	changes, err := ReadFleetFile(strings.NewReader(swapped))
	require.NoError(t, err)
	on, err := readRecord(t.Context(), p.Pool, changes.only(FleetFile{Vehicles: []telematics.Vehicle{{ID: 1}}}))
	require.NoError(t, err)
	if len(on.vehicles) != 1 || len(on.units) != 1 {
		t.Errorf("%d vehicles and %d units are read to write one", len(on.vehicles), len(on.units))
	}
}

func TestReadFleetFile_Syntax(t *testing.T) {
	vehicle := func(plate string) string {
		return "{\"vehicles\": [{\"id\": 1,\n\"plate_number\": " + plate + "}]}"
	}
	for _, c := range []struct{ text, want string }{
		{vehicle("\"T\xdc-AB 1\""), "read fleet file: line 2: not UTF-8: save the file in that encoding"},
		{vehicle(`"M 1", "plate_number": "M 2"`), "read fleet file: line 2: plate_number comes twice in its object"},
		{vehicle(`"M 1", "installation": {"a": "1", "a": "2"}`), "read fleet file: line 2: a comes twice in its object"},
		{`{"vehicles": [], "vehicles": []}`, "read fleet file: line 1: vehicles comes twice in its object"},
		{`{} {}`, "read fleet file: something follows the JSON object"},
		{"id;plate\n1;M 1", "read fleet file: want a JSON object; docs/fleet.md shows how to make one from a spreadsheet"},
		{"1;M 1", "read fleet file: want a JSON object; docs/fleet.md shows how to make one from a spreadsheet"},
		{"[{}]", "read fleet file: want a JSON object; docs/fleet.md shows how to make one from a spreadsheet"},
	} {
		if _, err := ReadFleetFile(strings.NewReader(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{"", "{", "null", `{"agencies": {}}`, vehicle(`"\ud800"`)} {
		if _, err := ParseFleetFile(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read, want an error", text)
		}
	}
	file, err := ParseFleetFile(strings.NewReader("\ufeff" + withAgency("", "")))
	if err != nil || len(file.Vehicles) != 1 {
		t.Errorf("a file with a byte order mark: %v", err)
	}
	// What another program has converted wrongly before.
	_, err = ParseFleetFile(strings.NewReader(withAgency("", `, "brand": "Citro`+"\ufffd"+`n"`)))
	if want := `vehicles[0].brand: "Citro` + "\ufffd" +
		`n": a character was lost (U+FFFD) when this text was converted from another encoding`; err == nil ||
		err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
