package vehicles

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// described is an object of a fleet file in words: its fields under their names in the file.
type described []fact

type fact struct {
	field, value string
	hidden       string // compared, and never shown
	other        string // how another hidden value is called
}

// plain returns fields without secrets.
func plain(pairs [][2]string) described {
	list := make(described, len(pairs))
	for i, p := range pairs {
		list[i] = fact{field: p[0], value: p[1]}
	}
	return list
}

func (a agency) described() described {
	unlock := deny
	if a.BestEffortUnlock {
		unlock = allow
	}
	limit := ""
	if a.FeeLimit != 0 {
		limit = money(a.FeeLimit, a.Currency)
	}
	return plain([][2]string{
		{"code", a.Code},
		{"name", a.Name},
		{"currency", string(a.Currency)},
		{"tax_percent", percent(a.Tax)},
		{"cancel_cutoff_minutes", minutes(a.CancelCutoff)},
		{"unlock_grace_minutes", minutes(a.UnlockGrace)},
		{"payment_wait_minutes", minutes(a.PaymentWait)},
		{"best_effort_unlock", string(unlock)},
		{"fee_limit", limit},
		{"buffer_minutes", minutes(a.Buffer)},
		{"rental_rules", describedRules(a.Rules)},
	})
}

func describedStation(s telematics.Station) described {
	return plain([][2]string{
		{"agency_id", fmt.Sprint(s.AgencyID)}, {"name", s.Name}, {"address", s.Address},
		{"latitude", fmt.Sprint(s.Latitude)}, {"longitude", fmt.Sprint(s.Longitude)},
	})
}

// described returns the vehicle with amounts in its agency's currency.
func (v vehicle) described(c rental.Currency) described {
	var hourly, deposit, year string
	if v.rate != nil {
		hourly, deposit = money(v.rate.Hourly, c), money(v.rate.Deposit, c)
	}
	if v.Year != 0 {
		year = fmt.Sprint(v.Year)
	}
	var reason, until string
	if v.Status == telematics.Maintenance {
		reason = v.Maintenance.Reason
		if at := v.Maintenance.Until; !at.IsZero() {
			until = at.Format(time.RFC3339)
		}
	}
	d := plain([][2]string{
		{"agency_id", fmt.Sprint(v.AgencyID)}, {"plate_number", v.Plate}, {"unit", string(v.Unit)}, {"status", string(v.Status)},
		{"reason", reason}, {"until", until},
		{"powertrain", string(v.Powertrain)}, {"brand", v.Brand}, {"model", v.Model}, {"year", year},
		{"color", v.Color}, {"category", v.Category}, {"image", v.Image}, {"features", strings.Join(v.Features, ", ")},
		{"capabilities", words(v.Actions)}, {"hourly_rate", hourly}, {"deposit", deposit},
	})
	if v.Unit == "" {
		return append(d, fact{field: "protocol"}, fact{field: "installation"})
	}
	var shown, secret []string
	for _, key := range slices.Sorted(maps.Keys(v.Installation)) {
		value := v.Installation[key]
		if dialects.Spoken.Secret(v.Protocol, key) {
			secret = append(secret, key+" "+value)
			value = "(not shown)"
		}
		shown = append(shown, key+" "+value)
	}
	return append(d, fact{field: "protocol", value: string(v.Protocol)},
		fact{"installation", strings.Join(shown, ", "), strings.Join(secret, ", "), "another secret"})
}

func words[T ~string](list []T) string {
	return strings.Join(pg.Map(list, func(word T) string { return string(word) }), ", ")
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d min", int64(d/time.Minute)) }

func percent(t rental.TaxRate) string {
	return fmt.Sprintf("%g %%", float64(t)/float64(rental.FullTax/100)) // rounded once: 7 is exact
}

// Difference is a field that a change of the fleet sets.
type Difference struct {
	Object string // such as "agency 1"
	Field  string // by its name in the fleet file
	From   string // in words; empty: none
	To     string
	New    bool // the object is new, with this value
}

// differences compares an object with what is on record of it; nil: it is new.
func differences(object string, before, after described) (list []Difference) {
	for i, f := range after {
		d := Difference{Object: object, Field: f.field, To: f.value, New: before == nil}
		if before != nil {
			d.From = before[i].value
			if before[i].value == f.value && before[i].hidden != f.hidden {
				d.To += ", " + f.other
			}
		}
		if d.From != d.To {
			list = append(list, d)
		}
	}
	return list
}

// differences compares the file with the record.
func (f FleetFile) differences(on record) (list []Difference) {
	for _, a := range f.Agencies {
		var before described
		if recorded, known := on.agencies[a.ID]; known {
			before = recorded.described()
		}
		terms := f.Terms[a.ID]
		list = append(list, differences(fmt.Sprint("agency ", a.ID), before, agency{Agency: a, Terms: terms}.described())...)
		list = append(list, differingTariffs(on.agencies[a.ID], f.Tariffs[a.ID], a.ID, terms.Currency)...)
		list = append(list, f.Areas[a.ID].differences(a.ID, on.areas[a.ID])...)
	}
	for _, s := range f.Stations {
		var before described
		if recorded, known := on.stations[s.ID]; known {
			before = describedStation(recorded)
		}
		list = append(list, differences(fmt.Sprint("station ", s.ID), before, describedStation(s))...)
	}
	currency := func(id telematics.AgencyID) rental.Currency {
		if terms, named := f.Terms[id]; named {
			return terms.Currency
		}
		return on.agencies[id].Currency
	}
	leaves := map[telematics.VehicleID]telematics.Unit{}
	for unit, recorded := range on.units {
		leaves[recorded.vehicle] = unit
	}
	for _, v := range f.Vehicles {
		var before described
		recorded, known := on.vehicles[v.ID]
		if known {
			v.Status = recorded.becomes(v.Status)
			before = recorded.described(on.agencies[recorded.AgencyID].Currency)
		}
		after := vehicle{Vehicle: v}
		if rate, rented := f.Rates[v.ID]; rented {
			after.rate = &rate
		}
		list = append(list, differences(fmt.Sprint("vehicle ", v.ID), before, after.described(currency(v.AgencyID)))...)
		delete(leaves, v.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(leaves)) {
		if id != 0 { // it is not in the file, which gives its unit to another vehicle
			list = append(list, Difference{Object: fmt.Sprint("vehicle ", id), Field: "unit", From: string(leaves[id])})
		}
	}
	return list
}

// Sentences returns the differences for people: one line for each field that changes, and one for
// each object that is new.
func Sentences(list []Difference) (lines []string) {
	for i, d := range list {
		field := strings.NewReplacer("_percent", "", "_minutes", "", "_id", "", "_", " ").Replace(d.Field)
		switch {
		case !d.New:
			lines = append(lines, fmt.Sprintf("%s: %s %s → %s", d.Object, field, orNone(d.From), orNone(d.To)))
		case i > 0 && list[i-1].Object == d.Object:
			lines[len(lines)-1] += fmt.Sprintf(", %s %s", field, d.To)
		default:
			lines = append(lines, fmt.Sprintf("%s: new: %s %s", d.Object, field, d.To))
		}
	}
	return lines
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}
