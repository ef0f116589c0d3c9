package vehicles

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// FleetFile is agencies with their stations and vehicles, and what those cost: all fields of each.
type FleetFile struct {
	Agencies []telematics.Agency
	Stations []telematics.Station
	// A status that is empty stays as it is on record.
	Vehicles []telematics.Vehicle
	// An agency that is not in it has nothing but the default currency. Rules that are zero stay as
	// they are on record.
	Terms map[telematics.AgencyID]rental.Terms
	// By category; nil: it has none. What is not in it stays as it is on record.
	Tariffs map[telematics.AgencyID]map[string]*rental.Plan
	Rates   map[telematics.VehicleID]rental.Rate // one that is not in it is not for rent
	// The areas that are set, or removed where there is none. Others stay.
	Areas map[telematics.AgencyID]agencyAreas
}

// ParseFleetFile reads a fleet file that says all of its agencies, stations and vehicles: none of
// them is on record. The error names every problem of the file, one a line, with its place.
func ParseFleetFile(r io.Reader) (FleetFile, error) {
	changes, err := ReadFleetFile(r)
	if err != nil {
		return FleetFile{}, err
	}
	return changes.over(record{})
}

// FleetChanges is the content of a fleet file: which fields of which agencies, stations and
// vehicles it sets.
type FleetChanges struct {
	agencies, stations, vehicles []*part
	problems                     []error                                  // found so far
	claimed                      map[telematics.Unit]telematics.VehicleID // the units that it names
}

// ReadFleetFile reads a fleet file:
//
//	{"agencies": [{"id": 1, "code": "MUC", "name": "…", "currency": "EUR", "tax_percent": 19, "cancel_cutoff_minutes": 60,
//	               "buffer_minutes": 15, "tariffs": {"compact": {"per_minute": 0.30, …}}, "rental_rules": {"hold_minutes": 20, …},
//	               "areas": {"centre": {"kind": "operating", "geometry": {…}}, "old": null}}],
//	 "stations": [{"id": 1, "agency_id": 1, "name": "…", "address": "…", "latitude": 48.1, "longitude": 11.5}],
//	 "vehicles": [{"id": 1, "agency_id": 1, "unit": "861…", "protocol": "v1", "installation": {"…": "…"},
//	               "status": "available", "powertrain": "electric", "plate_number": "…", "brand": "…",
//	               "model": "…", "year": 2024, "color": "…", "category": "…",
//	               "image": "https://…", "features": ["…"], "capabilities": ["lock", …], "hourly_rate": 15.00, "deposit": 200}]}
//
// A field that is absent stays as it is on record; null clears it. What is new needs all fields
// without a default: a vehicle its agency, powertrain, plate number and capabilities. Amounts are
// in the currency of the vehicle's agency, and read exactly.
//
// It returns an error for a file that is not JSON in UTF-8, or has a key twice in an object. A byte
// order mark is accepted. Other problems are found when the changes are compared with the record.
func ReadFleetFile(r io.Reader) (FleetChanges, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return FleetChanges{}, fmt.Errorf("read fleet file: %w", err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if err := checkSyntax(text); err != nil {
		return FleetChanges{}, fmt.Errorf("read fleet file: %w", err)
	}
	c := FleetChanges{claimed: map[telematics.Unit]telematics.VehicleID{}}
	root := newPart("", text, &c.problems)
	c.agencies, c.stations, c.vehicles = root.parts("agencies"), root.parts("stations"), root.parts("vehicles")
	root.end()
	for _, v := range c.vehicles {
		c.claim(v)
	}
	return c, nil
}

// claim notes the unit that a vehicle names.
func (c *FleetChanges) claim(vehicle *part) {
	for _, unit := range units([]*part{vehicle}) {
		c.claimed[unit] = telematics.VehicleID(vehicle.number)
	}
}

// units returns the units that vehicles name, without what can be none: it cannot be looked up.
func units(vehicles []*part) (named []telematics.Unit) {
	for _, p := range vehicles {
		if unit, err := telematics.ParseSerial(peek[string](p, "unit")); err == nil {
			named = append(named, unit)
		}
	}
	return named
}

// checkSyntax returns an error with the line of what is not JSON, not UTF-8, or a key that its
// object has already.
func checkSyntax(text []byte) error {
	if utf8.Valid(text) && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return errors.New("want a JSON object; docs/fleet.md shows how to make one from a spreadsheet")
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.ReadValue(); err != nil {
		at := decoder.InputOffset()
		syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
		if ok {
			at, err = syntax.ByteOffset, syntax.Err
		}
		line := 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
		switch {
		case !utf8.Valid(text):
			line = 1 + bytes.Count(text[:invalidUTF8(text)], []byte("\n"))
			return fmt.Errorf("line %d: not UTF-8: save the file in that encoding", line)
		case errors.Is(err, jsontext.ErrDuplicateName):
			return fmt.Errorf("line %d: %s comes twice in its object", line, syntax.JSONPointer.LastToken())
		}
		return fmt.Errorf("line %d: %w", line, err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// invalidUTF8 returns the position of the first byte that is not UTF-8.
func invalidUTF8(text []byte) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// peek returns a field before it is read; zero: it has no value of that type.
func peek[T any](p *part, key string) (v T) {
	if json.Unmarshal(p.fields[key], &v) != nil {
		return *new(T)
	}
	return v
}

// record is what is on record of what a fleet file names, and of the agencies of that.
type record struct {
	agencies map[telematics.AgencyID]agency
	stations map[telematics.StationID]telematics.Station
	vehicles map[telematics.VehicleID]vehicle
	units    map[telematics.Unit]unit
	codes    map[string]telematics.AgencyID // who has the codes that the file names
	areas    map[telematics.AgencyID]agencyAreas
}

type agency struct {
	telematics.Agency
	rental.Terms
	tariffs map[string]rental.Plan // by category
	rated   bool                   // it has vehicles with a rate
}

type vehicle struct {
	telematics.Vehicle
	rate       *rental.Rate             // nil: not for rent
	byBookings telematics.VehicleStatus // that follows from its bookings; empty: it has none
}

// becomes returns the status that the vehicle has once a file sets one.
func (v vehicle) becomes(s telematics.VehicleStatus) telematics.VehicleStatus {
	if s == "" {
		return v.Status
	}
	if s == telematics.Maintenance || s == telematics.Inactive {
		return s
	}
	return cmp.Or(v.byBookings, s)
}

// unit is what is on record of a unit, whether a vehicle has it or not.
type unit struct {
	vehicle      telematics.VehicleID // zero: none
	agency       telematics.AgencyID  // of the vehicle
	protocol     telematics.Protocol
	installation telematics.Installation
}

// newAgency has the values of what a fleet file does not say, or clears.
var newAgency = agency{Terms: rental.Terms{
	Currency: rental.DefaultCurrency, UnlockGrace: rental.DefaultUnlockGrace, PaymentWait: rental.DefaultPaymentWait,
	Rules: rental.DefaultRules,
}}

// Units returns the vehicles whose units the changes name, in their order, with nothing but id and
// unit. The error names every problem of those, one a line.
func (c FleetChanges) Units() (list []telematics.Vehicle, err error) {
	problems := slices.Clone(c.problems)
	for _, p := range c.vehicles {
		p = p.over(false, &problems)
		v := telematics.Vehicle{ID: telematics.VehicleID(p.id("id", 0))}
		if v.Unit = p.serial("unit", ""); v.Unit != "" {
			list = append(list, v)
		}
	}
	return list, errors.Join(problems...)
}

// only returns the changes of what a part of them names.
func (c FleetChanges) only(part FleetFile) FleetChanges {
	c.agencies = pick(c.agencies, part.Agencies, func(a telematics.Agency) int64 { return int64(a.ID) })
	c.stations = pick(c.stations, part.Stations, func(s telematics.Station) int64 { return int64(s.ID) })
	c.vehicles = pick(c.vehicles, part.Vehicles, func(v telematics.Vehicle) int64 { return int64(v.ID) })
	return c
}

// pick returns the parts of some objects.
func pick[T any](parts []*part, objects []T, number func(T) int64) []*part {
	named := map[int64]bool{}
	for _, o := range objects {
		named[number(o)] = true
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return !named[p.number] })
}

// over returns all fields of what the changes name. The error names every problem, one a line.
func (c FleetChanges) over(on record) (FleetFile, error) {
	problems := slices.Clone(c.problems)
	file := FleetFile{
		Terms: map[telematics.AgencyID]rental.Terms{}, Rates: map[telematics.VehicleID]rental.Rate{},
		Tariffs: map[telematics.AgencyID]map[string]*rental.Plan{},
		Areas:   map[telematics.AgencyID]agencyAreas{},
	}
	for _, p := range c.agencies {
		before, known := on.agencies[telematics.AgencyID(p.number)]
		if !known {
			before = newAgency
		}
		p = p.over(known, &problems)
		file.Areas[telematics.AgencyID(p.number)] = p.areas(on.areas[telematics.AgencyID(p.number)])
		a, tariffs := p.agency(before)
		file.Agencies = append(file.Agencies, a.Agency)
		file.Terms[a.ID] = a.Terms
		if len(tariffs) > 0 {
			file.Tariffs[a.ID] = tariffs
		}
	}
	for _, p := range c.stations {
		before, known := on.stations[telematics.StationID(p.number)]
		file.Stations = append(file.Stations, p.over(known, &problems).station(before))
	}
	for _, p := range c.vehicles {
		before, known := on.vehicles[telematics.VehicleID(p.number)]
		v := p.over(known, &problems).vehicle(before, c, on, file.Terms)
		file.Vehicles = append(file.Vehicles, v.Vehicle)
		if v.rate != nil {
			file.Rates[v.ID] = *v.rate
		}
	}
	problems = append(problems, file.contradictions(on)...)
	if len(problems) > 0 {
		return FleetFile{}, errors.Join(problems...)
	}
	return file, nil
}

var agencyCodePattern = regexp.MustCompile(`^[A-Za-z0-9]{1,16}$`)

// bestEffort is what an agency lets commands do that may come late.
type bestEffort string

const (
	allow bestEffort = "allow"
	deny  bestEffort = "deny"
)

// agency reads an agency, and those of its tariffs that the file names.
func (p *part) agency(before agency) (agency, map[string]*rental.Plan) {
	defer p.end()
	a := agency{Agency: telematics.Agency{
		ID: telematics.AgencyID(p.id("id", int64(before.ID))), Code: p.text("code", before.Code), Name: p.text("name", before.Name),
	}}
	if a.Code != "" && !agencyCodePattern.MatchString(a.Code) {
		p.problem("code", "%q: want 1 to 16 letters and digits", a.Code)
	}
	unlock := deny
	if before.BestEffortUnlock {
		unlock = allow
	}
	a.BestEffortUnlock = oneOf(p, "best_effort_unlock", []bestEffort{deny, allow}, unlock, deny) == allow
	a.Terms = p.terms(before)
	return a, p.tariffs(before, a.Currency)
}

// maxPause bounds what an agency's terms keep free: no booking is longer.
const maxPause = rental.Minutes(rental.MaxLength / time.Minute)

func (p *part) terms(before agency) rental.Terms {
	currency := p.currency("currency", before.Currency)
	if currency != "" && currency != before.Currency && (before.rated || len(before.tariffs) > 0 || before.FeeLimit != 0) {
		p.problem("currency", "%s → %s: there are prices in %s; remove them by an import before this one: "+
			"hourly_rate of its vehicles, tariffs and fee_limit null", before.Currency, currency, before.Currency)
		currency = ""
	}
	limit := p.amount("fee_limit", currency, pg.Nullable(before.FeeLimit))
	if limit != nil && *limit <= 0 && currency != "" {
		p.problem("fee_limit", "want an amount above 0")
	}
	return rental.Terms{
		UnlockGrace: p.minutes("unlock_grace_minutes", before.UnlockGrace, newAgency.UnlockGrace),
		PaymentWait: p.minutes("payment_wait_minutes", before.PaymentWait, newAgency.PaymentWait), FeeLimit: pg.Deref(limit),
		Currency: currency, Tax: p.tax("tax_percent", before.Tax),
		CancelCutoff: p.minutes("cancel_cutoff_minutes", before.CancelCutoff, newAgency.CancelCutoff),
		Buffer:       p.minutes("buffer_minutes", before.Buffer, newAgency.Buffer),
		Rules:        p.rules(before.Rules),
	}
}

// minutes reads a number of minutes up to maxPause.
func (p *part) minutes(key string, recorded, cleared time.Duration) time.Duration {
	n, is := take[rental.Minutes](p, key, "a whole number")
	switch {
	case is == absent:
		return recorded
	case is == null:
		return cleared
	case n < 0 || n > maxPause:
		p.problem(key, "%d: want 0 to %d", n, maxPause)
	}
	return n.Duration()
}

func (p *part) station(before telematics.Station) telematics.Station {
	defer p.end()
	return telematics.Station{
		ID: telematics.StationID(p.id("id", int64(before.ID))), AgencyID: telematics.AgencyID(p.id("agency_id", int64(before.AgencyID))),
		Name: p.text("name", before.Name), Address: p.text("address", before.Address),
		Latitude: p.decimal("latitude", -90, 90, before.Latitude), Longitude: p.decimal("longitude", -180, 180, before.Longitude),
	}
}

// contradictions finds what is wrong between the parts of the file.
func (f FleetFile) contradictions(on record) []error {
	var problems []error
	once := func(what string) func(place string, key any) {
		first := map[any]string{}
		return func(place string, key any) {
			if reflect.ValueOf(key).IsZero() {
				return // a missing agency is reported elsewhere, or there is none
			}
			if before, ok := first[key]; ok {
				problems = append(problems, problem{place: place, message: fmt.Sprintf("%s %v is that of %s", what, key, before)})
				return
			}
			first[key] = place
		}
	}
	known := map[telematics.AgencyID]bool{0: true} // zero: an error already
	belongs := func(place string, id telematics.AgencyID) {
		if _, recorded := on.agencies[id]; !recorded && !known[id] {
			problems = append(problems, problem{place, "agency_id", fmt.Sprintf("there is no agency %d", id)})
		}
	}
	agency, code, station, vehicle, unit := once("id"), once("code"), once("id"), once("id"), once("unit")
	for i, a := range f.Agencies {
		place := fmt.Sprintf("agencies[%d]", i)
		agency(place, a.ID)
		code(place, a.Code)
		if owner, taken := on.codes[a.Code]; taken && owner != a.ID {
			problems = append(problems, problem{
				place, "code",
				fmt.Sprintf(
					"%s is the code of agency %d: choose another one, or give that agency another one first, by an import before this one",
					a.Code, owner,
				),
			})
		}
		known[a.ID] = true
	}
	for i, s := range f.Stations {
		place := fmt.Sprintf("stations[%d]", i)
		station(place, s.ID)
		belongs(place, s.AgencyID)
	}
	for i, v := range f.Vehicles {
		place := fmt.Sprintf("vehicles[%d]", i)
		vehicle(place, v.ID)
		unit(place, v.Unit)
		belongs(place, v.AgencyID)
		if like := f.tariffLike(v, on); like != "" && v.Category != on.vehicles[v.ID].Category {
			problems = append(problems, problem{place, "category", fmt.Sprintf("%q: the agency's tariff is for %q", v.Category, like)})
		}
	}
	return problems
}

// tariffLike returns the category of a tariff that a vehicle does not have by its letter case
// alone, so that it would cost something else; empty: there is none.
func (f FleetFile) tariffLike(v telematics.Vehicle, on record) (like string) {
	named := map[string]bool{}
	for category := range on.agencies[v.AgencyID].tariffs {
		named[category] = true
	}
	for category, plan := range f.Tariffs[v.AgencyID] {
		named[category] = plan != nil
	}
	for category, has := range named {
		if has && strings.EqualFold(category, v.Category) {
			like = category
		}
	}
	if named[v.Category] {
		return ""
	}
	return like
}
