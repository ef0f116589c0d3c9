package resource

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// Record is the stored data of a vehicle.
type Record struct {
	ID         int64                    `json:"id"`
	AgencyID   int64                    `json:"agency_id"`
	Unit       *telematics.Unit         `json:"unit"`
	Protocol   *telematics.Protocol     `json:"protocol"`
	Status     telematics.VehicleStatus `json:"status"`
	Powertrain telematics.Powertrain    `json:"powertrain"`
	Description
}

// Description describes a vehicle to people.
type Description struct {
	PlateNumber string `json:"plate_number"`
	Appearance
}

// Appearance is what clients choose a vehicle by.
type Appearance struct {
	Brand    string   `json:"brand"`
	Model    string   `json:"model"`
	Year     *int     `json:"year"`
	Color    *string  `json:"color"`
	Category *string  `json:"category"`
	Image    *string  `json:"image"`
	Features []string `json:"features"`
}

// Vehicle is a vehicle with its capabilities.
type Vehicle struct {
	Record
	Maintenance  *Maintenance       `json:"maintenance"`  // null: it is not in maintenance
	Installation map[string]*string `json:"installation"` // null: there is none
	HourlyRate   *json.Number       `json:"hourly_rate"`  // null: it is not for rent
	Deposit      *json.Number       `json:"deposit"`
	Currency     rental.Currency    `json:"currency"`
	Promises     *Promises          `json:"promises"`
	Capabilities Capabilities       `json:"capabilities"`
	Keys         []string           `json:"keys"` // null: the unit never said
}

// Maintenance is why a vehicle is in maintenance, and until when.
type Maintenance struct {
	Reason *string `json:"reason"`
	Until  *string `json:"until"`
	Since  *string `json:"since"`
	By     *string `json:"by"`
}

// newMaintenance returns nil for a vehicle that is not in maintenance.
func newMaintenance(v telematics.Vehicle) *Maintenance {
	if v.Status != telematics.Maintenance {
		return nil
	}
	d := v.Maintenance
	return &Maintenance{
		Reason: OrNull(d.Reason), Until: TimestampOrNull(d.Until), Since: TimestampOrNull(d.Since), By: OrNull(d.By),
	}
}

type Capabilities struct {
	Commands []telematics.Action `json:"commands"`
	Refresh  bool                `json:"refresh"` // the unit reports when it is asked
	Signals  []string            `json:"signals"`
}

// Marker is a vehicle with the state that a map needs, under the names of the vehicle status.
type Marker struct {
	Record
	Connectivity UnitPresence       `json:"connectivity"`
	Location     Section            `json:"location"`
	Telemetry    Section            `json:"telemetry"`
	Diagnostics  Section            `json:"diagnostics"`
	Capabilities MarkerCommands     `json:"capabilities"`
	ReportedAt   map[string]*string `json:"reported_at"` // by field; null: never reported
	LockedAt     *string            `json:"locked_at"`
	EnergyAt     *string            `json:"energy_at"`
	Stored       bool               `json:"state_stored"`
}

// markerFields are the fields of telemetry and diagnostics that a marker has.
var markerFields = []telematics.Field{
	telematics.SpeedKmh, telematics.Ignition, telematics.IsLocked, telematics.FuelLevel, telematics.Battery, telematics.RangeKm,
	telematics.Charging, telematics.DTCs, telematics.WarningLamps,
}

// MarkerCommands are the control actions of the vehicle, as its Capabilities have them.
type MarkerCommands struct {
	Commands []telematics.Action `json:"commands"`
}

// UnitPresence is whether a unit is connected.
type UnitPresence struct {
	Status   telematics.PresenceStatus `json:"status"`
	LastSeen *string                   `json:"last_seen"`
}

func newPresence(c telematics.Contact, now time.Time) UnitPresence {
	return UnitPresence{Status: c.At(now), LastSeen: TimestampOrNull(c.LastSeen)}
}

func newRecord(v telematics.Vehicle) Record {
	return Record{
		ID: int64(v.ID), AgencyID: int64(v.AgencyID), Unit: OrNull(v.Unit), Protocol: protocol(v), Status: v.Status,
		Powertrain: v.Powertrain, Description: newDescription(v),
	}
}

func newDescription(v telematics.Vehicle) Description {
	return Description{PlateNumber: v.Plate, Appearance: Appearance{
		Brand: v.Brand, Model: v.Model, Year: OrNull(v.Year), Color: OrNull(v.Color), Category: OrNull(v.Category), Image: OrNull(v.Image),
		Features: append([]string{}, v.Features...),
	}}
}

// protocol returns the protocol of the unit; nil: there is no unit.
func protocol(v telematics.Vehicle) *telematics.Protocol {
	if v.Unit == "" {
		return nil
	}
	return OrNull(cmp.Or(v.Protocol, telematics.DefaultProtocol))
}

// Promises are the guarantees for every command to a unit.
type Promises struct {
	Signed       bool `json:"signed"`
	Expiring     bool `json:"expiring"`
	Deduplicated bool `json:"deduplicated"`
	Correlated   bool `json:"correlated"`
	Confirmed    bool `json:"confirmed"`
}

// newPromises returns nil if there is no unit, or this version lacks its protocol.
func newPromises(v telematics.Vehicle) *Promises {
	promises, ok := dialects.Spoken.Promises(v)
	if !ok {
		return nil
	}
	return new(Promises(promises))
}

// installation returns the settings of a vehicle's unit, null for those that are secret; nil: it
// has none, or there is no unit.
func installation(v telematics.Vehicle) map[string]*string {
	if v.Unit == "" || len(v.Installation) == 0 {
		return nil
	}
	settings := map[string]*string{}
	for key, value := range v.Installation {
		settings[key] = &value
		if dialects.Spoken.Secret(v.Protocol, key) {
			settings[key] = nil
		}
	}
	return settings
}

// NewVehicle returns a vehicle with its capabilities, and what it costs; nil: it is not for rent.
func NewVehicle(t telematics.Twin, rate *rental.Rate, c rental.Currency) Vehicle {
	var hourly, deposit *json.Number
	if rate != nil {
		hourly, deposit = new(Money(c, rate.Hourly)), new(Money(c, rate.Deposit))
	}
	return Vehicle{
		Record:       newRecord(t.Vehicle),
		Maintenance:  newMaintenance(t.Vehicle),
		Installation: installation(t.Vehicle),
		HourlyRate:   hourly, Deposit: deposit, Currency: c,
		Promises: newPromises(t.Vehicle),
		Capabilities: Capabilities{
			Commands: controls(t), Refresh: dialects.Spoken.CanOrder(t, telematics.ReportState), Signals: signals(t),
		},
		Keys: t.Contact.Keys,
	}
}

// NewMarker returns a vehicle with its state. address is that of its position; nil: unknown.
func NewMarker(t telematics.Twin, address *string, now time.Time) Marker {
	known := t.Snapshot.For(t.Powertrain)
	values, times := newSections(known, markerFields), map[string]*string{}
	for _, f := range markerFields {
		times[f.Name()] = TimestampOrNull(known.Of(f).At)
	}
	valueTime := func(f telematics.Field) *string {
		if known.Of(f).Value == nil {
			return nil
		}
		return times[f.Name()]
	}
	return Marker{
		Record:       newRecord(t.Vehicle),
		Connectivity: newPresence(t.Contact, now),
		Location:     newLocation(known, address),
		Telemetry:    group(values, "telemetry"),
		Diagnostics:  group(values, "diagnostics"),
		Capabilities: MarkerCommands{controls(t)},
		Stored:       !t.Unstored,
		ReportedAt:   times,
		LockedAt:     valueTime(telematics.IsLocked),
		EnergyAt:     valueTime(energyOf(t.Powertrain)),
	}
}

// energyOf returns the field of how much energy a vehicle has.
func energyOf(p telematics.Powertrain) telematics.Field {
	if p == telematics.Electric {
		return telematics.Battery
	}
	return telematics.FuelLevel
}

// controls lists the control actions of the vehicle, in the order of the interface; none without a
// unit.
func controls(t telematics.Twin) []telematics.Action {
	actions := slices.Clone(telematics.ControlActions)
	return slices.DeleteFunc(actions, func(a telematics.Action) bool { return !dialects.Spoken.CanOrder(t, a) })
}

// signals lists the fields for which the vehicle has ever reported a value, by their names in the
// vehicle status. For fields only reported as unknown, it has no sensor.
func signals(t telematics.Twin) []string {
	names := []string{}
	for field, reading := range t.Snapshot.For(t.Powertrain).All() {
		if !reading.Ever() || field.IsOfArrival() {
			continue
		}
		switch field {
		case telematics.RawCharging, telematics.RawDTCs:
			names = append(names, telematics.OEMData.String()) // where they are shown
		case telematics.RSRP:
			names = append(names, "connectivity.signal_quality") // what is made of it
		default:
			names = append(names, field.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
