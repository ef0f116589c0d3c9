package resource

import (
	"slices"
	"strings"
	"time"

	"motorpool/telematics"
)

// Status is the vehicle status of the interface, section 2.2.
type Status struct {
	VehicleID    int64                    `json:"vehicle_id"`
	Status       telematics.VehicleStatus `json:"status"`
	Location     Section                  `json:"location"`
	Telemetry    Section                  `json:"telemetry"`
	Diagnostics  Section                  `json:"diagnostics"`
	Connectivity Connectivity             `json:"connectivity"`
	OEMData      map[string]any           `json:"oem_data"`
}

// Section is a section of the vehicle status: the values of its fields by their names (see
// telematics.Field), those of a group in an object; null: unknown.
type Section map[string]any

type Connectivity struct {
	UnitPresence
	SignalQuality   *string `json:"signal_quality"`
	FirmwareVersion *string `json:"firmware_version"`
}

// StatusMeta is the source and the age of a vehicle status.
type StatusMeta struct {
	Source   string             `json:"source"`
	Sections map[string]*string `json:"sections"` // vehicle time; null: never reported
	Older    map[string]string  `json:"older"`    // of fields that are older than their section
	Stored   bool               `json:"state_stored"`
}

// statusFields are the fields of telemetry and diagnostics.
var statusFields = slices.DeleteFunc(slices.Clone(telematics.Fields), func(f telematics.Field) bool {
	return f.IsRaw() || f.Section() != "telemetry" && f.Section() != "diagnostics"
})

var locationFields = []telematics.Field{telematics.Latitude, telematics.Longitude, telematics.Heading, telematics.LocatedAt}

// NewStatus returns the status of a vehicle. address is that of its position; nil: unknown.
func NewStatus(t telematics.Twin, address *string, now time.Time) Status {
	known := t.Snapshot.For(t.Powertrain)
	values := newSections(known, statusFields)
	return Status{
		VehicleID: int64(t.ID), Status: t.Status,
		Location: newLocation(known, address), Telemetry: group(values, "telemetry"), Diagnostics: group(values, "diagnostics"),
		Connectivity: Connectivity{
			UnitPresence:    newPresence(t.Contact, now),
			SignalQuality:   telematics.SignalQuality(known.Number(telematics.RSRP)),
			FirmwareVersion: firmware(known, t.Contact),
		},
		OEMData: known.OEM(),
	}
}

// newSections returns the values of some fields in their sections.
func newSections(known telematics.Snapshot, fields []telematics.Field) Section {
	sections := Section{}
	for _, f := range fields {
		sections.put(f.String(), known.Of(f).Value)
	}
	return sections
}

// put sets the value at a path.
func (s Section) put(path string, value any) {
	names := strings.Split(path, ".")
	last := len(names) - 1
	if at, ok := value.(time.Time); ok {
		value = Timestamp(at)
	}
	group(s, names[:last]...)[names[last]] = value
}

// group returns the object at a path, and creates it if there is none.
func group(in Section, path ...string) Section {
	for _, name := range path {
		inner, ok := in[name].(Section)
		if !ok {
			inner = Section{}
			in[name] = inner
		}
		in = inner
	}
	return in
}

func newLocation(known telematics.Snapshot, address *string) Section {
	location := group(newSections(known, locationFields), "location")
	location["address"] = address
	return location
}

// firmware returns the newer version of those in the unit's reports and in its presence.
func firmware(known telematics.Snapshot, contact telematics.Contact) *string {
	if isFirmwareOfContact(known, contact) {
		return OrNull(contact.Firmware)
	}
	return known.Text(telematics.Firmware)
}

func isFirmwareOfContact(known telematics.Snapshot, contact telematics.Contact) bool {
	return known.Text(telematics.Firmware) == nil || contact.Firmware != "" && contact.SaidAt.After(known.Of(telematics.Firmware).At)
}

// NewStatusMeta returns the source and the age of a vehicle status.
func NewStatusMeta(t telematics.Twin, source string) StatusMeta {
	known := t.Snapshot.For(t.Powertrain)
	times := known.SectionTimes()
	meta := StatusMeta{Source: source, Sections: map[string]*string{}, Older: map[string]string{}, Stored: !t.Unstored}
	for _, section := range telematics.Sections {
		meta.Sections[section] = TimestampOrNull(times[section])
	}
	for field, at := range known.Older() {
		meta.Older[nameInStatus(field)] = Timestamp(at)
	}
	if isFirmwareOfContact(known, t.Contact) && !t.Contact.SaidAt.Before(times[telematics.Firmware.Section()]) {
		delete(meta.Older, telematics.Firmware.String())
	}
	return meta
}

// nameInStatus returns the path of a field in the vehicle status, which has the signal in words.
func nameInStatus(f telematics.Field) string {
	if f == telematics.RSRP {
		return "connectivity.signal_quality"
	}
	return f.String()
}
