package vehicles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// FleetFile is the content of a fleet file: agencies with their stations and vehicles, and what
// those cost.
type FleetFile struct {
	Agencies []telematics.Agency
	Stations []telematics.Station
	Vehicles []telematics.Vehicle
	// An agency that is not in it has nothing but the default currency.
	Terms map[telematics.AgencyID]rental.Terms
	Rates map[telematics.VehicleID]rental.Rate // one that is not in it is not for rent
}

// ParseFleetFile reads a fleet file:
//
//	{"agencies": [{"id": 1, "code": "MUC", "name": "…", "currency": "EUR", "tax_percent": 19, "cancel_cutoff_minutes": 60,
//	               "buffer_minutes": 15}],
//	 "stations": [{"id": 1, "agency_id": 1, "name": "…", "address": "…", "latitude": 48.1, "longitude": 11.5}],
//	 "vehicles": [{"id": 1, "agency_id": 1, "unit": "861…", "protocol": "v1", "installation": {"…": "…"},
//	               "status": "available", "powertrain": "electric", "plate_number": "…", "brand": "…", "model": "…", "year": 2024, "color": "…", "category": "…",
//	               "image": "https://…", "features": ["…"], "capabilities": ["lock", …], "hourly_rate": 15.00, "deposit": 200}]}
//
// A vehicle needs an id, an agency, a powertrain, a plate number and capabilities; its status is
// available unless it says otherwise. Amounts are in the currency of the vehicle's agency, and read
// exactly. The error names every problem of the file, one a line, with its place.
func ParseFleetFile(r io.Reader) (FleetFile, error) {
	var raw json.RawMessage
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(&raw); err != nil {
		return FleetFile{}, fmt.Errorf("read fleet file: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return FleetFile{}, errors.New("read fleet file: something follows the JSON object")
	}
	var problems []error
	root := newPart("", raw, &problems)
	file := FleetFile{Terms: map[telematics.AgencyID]rental.Terms{}, Rates: map[telematics.VehicleID]rental.Rate{}}
	for _, part := range root.parts("agencies") {
		agency, terms := part.agency()
		file.Agencies = append(file.Agencies, agency)
		file.Terms[agency.ID] = terms
	}
	for _, part := range root.parts("stations") {
		file.Stations = append(file.Stations, part.station())
	}
	for _, part := range root.parts("vehicles") {
		vehicle, rate := part.vehicle(file.Terms)
		file.Vehicles = append(file.Vehicles, vehicle)
		if rate != nil {
			file.Rates[vehicle.ID] = *rate
		}
	}
	root.end()
	problems = append(problems, file.contradictions()...)
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

func (p *part) agency() (telematics.Agency, rental.Terms) {
	defer p.end()
	a := telematics.Agency{ID: telematics.AgencyID(p.id("id")), Code: p.text("code"), Name: p.text("name")}
	if a.Code != "" && !agencyCodePattern.MatchString(a.Code) {
		p.problem("code", "%q: want 1 to 16 letters and digits", a.Code)
	}
	a.BestEffortUnlock = oneOf(p, "best_effort_unlock", []bestEffort{deny, allow}, deny) == allow
	return a, p.terms()
}

// maxPause bounds what an agency's terms keep free: no booking is longer.
const maxPause = int64(rental.MaxLength / time.Minute)

func (p *part) terms() rental.Terms {
	currency := p.currency("currency")
	limit, limited := p.amount("fee_limit", currency)
	if limited && limit <= 0 {
		p.problem("fee_limit", "want an amount above 0")
	}
	return rental.Terms{
		UnlockGrace: p.minutes("unlock_grace_minutes", rental.DefaultUnlockGrace),
		PaymentWait: p.minutes("payment_wait_minutes", rental.DefaultPaymentWait), FeeLimit: limit,
		Currency: currency, Tax: p.tax("tax_percent"),
		CancelCutoff: p.minutes("cancel_cutoff_minutes", 0),
		Buffer:       p.minutes("buffer_minutes", 0),
	}
}

// minutes reads a number of minutes up to maxPause.
func (p *part) minutes(name string, otherwise time.Duration) time.Duration {
	n, named := take[int64](p, name, "a whole number")
	if n < 0 || n > maxPause {
		p.problem(name, "%d: want 0 to %d", n, maxPause)
	}
	if !named {
		return otherwise
	}
	return time.Duration(n) * time.Minute
}

func (p *part) station() telematics.Station {
	defer p.end()
	return telematics.Station{
		ID: telematics.StationID(p.id("id")), AgencyID: telematics.AgencyID(p.id("agency_id")),
		Name: p.text("name"), Address: p.text("address"),
		Latitude: p.number("latitude", -90, 90), Longitude: p.number("longitude", -180, 180),
	}
}

func (p *part) vehicle(terms map[telematics.AgencyID]rental.Terms) (telematics.Vehicle, *rental.Rate) {
	defer p.end()
	v := telematics.Vehicle{
		ID: telematics.VehicleID(p.id("id")), AgencyID: telematics.AgencyID(p.id("agency_id")),
		Unit:       p.unit("unit"),
		Protocol:   oneOf(p, "protocol", dialects.Spoken.Names(), telematics.DefaultProtocol),
		Status:     oneOf(p, "status", telematics.VehicleStatuses, telematics.Available),
		Powertrain: oneOf(p, "powertrain", telematics.Powertrains, ""),
		Plate:      p.text("plate_number"), Brand: p.optionalText("brand"), Model: p.optionalText("model"),
		Year: p.year("year"), Color: p.optionalText("color"), Category: p.optionalText("category"),
		Image: p.optionalText("image"), Features: p.texts("features"),
	}
	if u, err := url.Parse(v.Image); v.Image != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		p.problem("image", "%q: want an http or https address", v.Image)
	}
	v.Installation, _ = take[telematics.Installation](p, "installation", "an object of texts")
	v.Actions = p.capabilities("capabilities", v)
	return v, p.rate(terms[v.AgencyID].Currency)
}

// rate reads what the vehicle costs; nil: it is not for rent.
func (p *part) rate(c rental.Currency) *rental.Rate {
	hourly, rented := p.amount("hourly_rate", c)
	deposit, held := p.amount("deposit", c)
	if !rented {
		if held {
			p.problem("deposit", "needs an hourly_rate: without one the vehicle is not for rent")
		}
		return nil
	}
	return &rental.Rate{Hourly: hourly, Deposit: deposit}
}

func (p *part) unit(key string) telematics.Unit {
	serial := p.optionalText(key)
	if serial == "" {
		return ""
	}
	unit, err := telematics.ParseSerial(serial)
	if err != nil {
		p.problem(key, "%v", err)
	}
	return unit
}

func (p *part) capabilities(key string, v telematics.Vehicle) []telematics.Action {
	if _, ok := p.fields[key]; !ok {
		p.problem(key, "missing")
	}
	actions := []telematics.Action{}
	var carried []telematics.Action
	dialect, spoken := dialects.Spoken.Find(v.Protocol) // another one is an error already
	if spoken {
		var err error
		if carried, err = dialect.Actions(v.Installation); err != nil {
			p.problem("installation", "%v", err)
			return actions
		}
	}
	for _, name := range p.texts(key) {
		action := telematics.Action(name)
		switch {
		case !slices.Contains(telematics.ControlActions, action):
			p.problem(key, "%q: want some of %v", name, telematics.ControlActions)
		case slices.Contains(actions, action):
			p.problem(key, "%q comes twice", name)
		case spoken && !slices.Contains(carried, action):
			p.problem(key, "%q: protocol %s has no such command for a unit that is installed so", name, v.Protocol)
		default:
			actions = append(actions, action)
		}
	}
	return actions
}

// contradictions finds what is wrong between the parts of the file.
func (f FleetFile) contradictions() []error {
	var problems []error
	once := func(what string) func(place string, key any) {
		first := map[any]string{}
		return func(place string, key any) {
			if reflect.ValueOf(key).IsZero() {
				return // a missing agency is reported elsewhere, or there is none
			}
			if before, ok := first[key]; ok {
				problems = append(problems, fmt.Errorf("%s: %s %v is that of %s", place, what, key, before))
				return
			}
			first[key] = place
		}
	}
	known := map[telematics.AgencyID]bool{0: true} // zero: an error already
	belongs := func(place string, id telematics.AgencyID) {
		if !known[id] {
			problems = append(problems, fmt.Errorf("%s.agency_id: there is no agency %d in this file", place, id))
		}
	}
	agency, code, station, vehicle, unit := once("id"), once("code"), once("id"), once("id"), once("unit")
	for i, a := range f.Agencies {
		place := fmt.Sprintf("agencies[%d]", i)
		agency(place, a.ID)
		code(place, a.Code)
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
	}
	return problems
}
