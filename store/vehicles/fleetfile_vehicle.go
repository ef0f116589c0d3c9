package vehicles

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"time"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// vehicle reads a vehicle of some changes. Its agency's terms are those of the changes, else those
// on record.
func (p *part) vehicle(before vehicle, c FleetChanges, on record, terms map[telematics.AgencyID]rental.Terms) vehicle {
	defer p.end()
	p.skipPastMaintenance()
	status := telematics.Available
	if p.known {
		status = "" // bookings may change it any moment
	}
	v := telematics.Vehicle{
		ID: telematics.VehicleID(p.id("id", int64(before.ID))), AgencyID: telematics.AgencyID(p.id("agency_id", int64(before.AgencyID))),
		Status:     oneOf(p, "status", telematics.VehicleStatuses, status, telematics.Available),
		Powertrain: oneOf(p, "powertrain", telematics.Powertrains, before.Powertrain, ""),
		Plate:      p.text("plate_number", before.Plate), Brand: p.optionalText("brand", before.Brand),
		Model: p.optionalText("model", before.Model),
		Year:  p.year("year", before.Year), Color: p.optionalText("color", before.Color),
		Category: p.optionalText("category", before.Category),
		Image:    p.optionalText("image", before.Image), Features: p.texts("features", before.Features),
	}
	if u, err := url.Parse(v.Image); v.Image != before.Image && v.Image != "" &&
		(err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		p.problem("image", "%q: want an http or https address", v.Image)
	}
	v.Maintenance = p.maintenance(cmp.Or(v.Status, before.Status), before.Maintenance)
	p.unit(&v, before.Vehicle, c, on)
	p.capabilities("capabilities", &v, before.Vehicle)
	its, named := terms[v.AgencyID]
	if !named {
		its = on.agencies[v.AgencyID].Terms
	}
	return vehicle{Vehicle: v, rate: p.rate(before.rate, on.agencies[before.AgencyID].Currency, its.Currency)}
}

// skipPastMaintenance removes maintenance that a fleet file says is over by now: the file stays as
// it is, and is imported again. A person who names such a time is mistaken.
func (p *part) skipPastMaintenance() {
	until, inFile := peek[time.Time](p, "until"), p.place != ""
	if !inFile || until.IsZero() || until.After(time.Now()) {
		return
	}
	delete(p.fields, "until")
	delete(p.fields, "reason")
	if peek[telematics.VehicleStatus](p, "status") == telematics.Maintenance {
		delete(p.fields, "status")
	}
}

// maintenance reads why a vehicle is in maintenance, and until when. The reason of another status
// is for the audit log.
func (p *part) maintenance(is telematics.VehicleStatus, recorded telematics.MaintenanceDetails) telematics.MaintenanceDetails {
	if is != telematics.Maintenance {
		recorded = telematics.MaintenanceDetails{}
		if p.fields["until"] != nil && string(p.fields["until"]) != "null" {
			p.problem("until", "only of a vehicle in maintenance")
		}
	}
	recorded.Reason = p.optionalText("reason", recorded.Reason)
	recorded.Until = exact(p, "until", recorded.Until, time.Time{}, func(text string) (at time.Time, err error) {
		err = json.Unmarshal([]byte(text), &at)
		at = at.UTC().Truncate(time.Second)
		const lastYear = 9999 // of RFC 3339
		if err != nil || !at.After(time.Now()) || at.Year() > lastYear {
			err = errors.New("want a time to come, such as 2030-01-31T18:00:00Z")
		}
		return at, err
	})
	return recorded
}

// rate reads what the vehicle costs. What it cost at an agency with another currency must be named
// anew.
func (p *part) rate(before *rental.Rate, was, is rental.Currency) *rental.Rate {
	var hourly, deposit *rental.Minor
	if before != nil {
		hourly, deposit = &before.Hourly, pg.Nullable(before.Deposit)
	}
	if before != nil && was != is && is != "" && string(p.fields["hourly_rate"]) != "null" {
		anew := func(key string, recorded *rental.Minor) {
			if recorded != nil && p.fields[key] == nil {
				p.problem(key, "is %s: name it in %s, the currency of the agency", money(*recorded, was), is)
			}
		}
		anew("hourly_rate", hourly)
		anew("deposit", deposit)
	}
	held := p.fields["deposit"] != nil
	hourly = p.amount("hourly_rate", is, hourly)
	deposit = p.amount("deposit", is, deposit)
	if hourly == nil && held && deposit != nil {
		p.problem("deposit", "needs an hourly_rate: without one the vehicle is not for rent")
	}
	return RateOf(hourly, pg.Deref(deposit))
}

func money(m rental.Minor, c rental.Currency) string { return c.Format(m) + " " + string(c) }

// unit reads the unit of a vehicle, what it speaks, and how it is built in. What is not said of a
// unit that comes to the vehicle is that of the unit or of the one before it; where both are on
// record and differ, it must be said.
func (p *part) unit(v *telematics.Vehicle, before telematics.Vehicle, c FleetChanges, on record) {
	named := p.fields["unit"] != nil
	v.Unit = p.serial("unit", before.Unit)
	if owner, claimed := c.claimed[v.Unit]; !named && claimed && owner != v.ID {
		v.Unit = "" // it comes to another vehicle
	}
	was := unit{protocol: telematics.DefaultProtocol}
	if before.Unit != "" {
		was = unit{protocol: before.Protocol, installation: before.Installation}
	}
	if recorded, known := on.units[v.Unit]; known && v.Unit != before.Unit {
		differs := func(key string) {
			if p.fields[key] == nil {
				p.problem(key, "must be said: that of unit %s differs from that of unit %s, which it replaces", v.Unit, before.Unit)
			}
		}
		if before.Unit != "" && recorded.protocol != was.protocol {
			differs("protocol")
		} else if before.Unit != "" && !maps.Equal(recorded.installation, was.installation) {
			differs("installation")
		}
		was = recorded
	}
	v.Protocol = oneOf(p, "protocol", dialects.Spoken.Names(), was.protocol, telematics.DefaultProtocol)
	v.Installation, _ = optional(p, "installation", "an object of texts", was.installation, nil)
}

func (p *part) serial(key string, recorded telematics.Unit) telematics.Unit {
	serial, read := optional(p, key, "a string", recorded, "")
	if _, err := telematics.ParseSerial(string(serial)); read && serial != "" && err != nil {
		p.problem(key, "%v", err)
	}
	return serial
}

// capabilities reads the actions of a vehicle, and checks whether its unit has them.
func (p *part) capabilities(key string, v *telematics.Vehicle, before telematics.Vehicle) {
	v.Actions = []telematics.Action{}
	switch raw := string(p.fields[key]); {
	case raw == "null" && p.known:
		p.problem(key, "cannot be cleared")
	case (raw == "" || raw == "null") && !p.known:
		p.problem(key, "missing")
	}
	recorded := pg.Map(before.Actions, func(a telematics.Action) string { return string(a) })
	unchanged := p.known && p.fields[key] == nil && v.Protocol == before.Protocol && maps.Equal(v.Installation, before.Installation)
	names := p.texts(key, recorded)
	if unchanged {
		v.Actions = append(v.Actions, before.Actions...)
		return
	}
	var carried []telematics.Action
	dialect, spoken := dialects.Spoken.Find(v.Protocol) // another one is an error already
	if spoken {
		var err error
		if carried, err = dialect.Actions(v.Installation); err != nil {
			p.problem("installation", "%v", err)
			return
		}
	}
	for _, name := range names {
		action := telematics.Action(name)
		switch {
		case !slices.Contains(telematics.ControlActions, action):
			p.problem(key, "%q: want some of %v", name, telematics.ControlActions)
		case slices.Contains(v.Actions, action):
			p.problem(key, "%q comes twice", name)
		case spoken && !slices.Contains(carried, action):
			p.problem(key, "%q: protocol %s has no such command for a unit that is installed so", name, v.Protocol)
		default:
			v.Actions = append(v.Actions, action)
		}
	}
}
