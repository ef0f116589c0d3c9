package telematics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Field is one thing that a vehicle reports. Its text is its place in the vehicle status: section,
// an optional group, and name. It indexes a Snapshot; its number may differ between versions.
type Field int

const (
	_ Field = iota
	Latitude
	Longitude
	Heading // degrees
	LocatedAt
	SpeedKmh
	MileageKm
	Ignition
	Gear
	ParkBrake
	FuelLevel
	Battery
	RangeKm
	Charging
	OnboardV
	IsLocked
	EngineRuns
	Sunroof
	KeyStatus

	DoorFrontLeft
	DoorFrontRight
	DoorRearLeft
	DoorRearRight
	DoorTrunk

	WindowFrontLeft
	WindowFrontRight
	WindowRearLeft
	WindowRearRight

	SeatbeltDriver
	SeatbeltPassenger

	DTCs
	ServiceDueKm
	OilLife
	WarningLamps

	RSRP
	Firmware

	OEMData
	// Values that do not fit the interface's field are kept here unchanged, and
	// shown inside oem_data.
	RawCharging
	RawDTCs

	// The speed that arrived last, dated by its arrival, and the arrival of the last one whose time
	// in SpeedKmh is that of its arrival, too. Forbids compares them; they are not shown.
	ArrivedSpeed
	SpeedByArrival

	fieldCount
)

// Sections lists the sections of a report and of a vehicle status.
var Sections = []string{"location", "telemetry", "diagnostics", "connectivity", "oem_data"}

func (f Field) String() string { return fields[f].name }

// Name returns the last part of the text.
func (f Field) Name() string {
	text := f.String()
	return text[strings.LastIndexByte(text, '.')+1:]
}

// MarshalText makes JSON of the field its text. It does not fail.
func (f Field) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a field by its text. It fails for one that this version does not have.
func (f *Field) UnmarshalText(text []byte) (err error) {
	var known bool
	if *f, known = FieldOf(string(text)); !known {
		err = fmt.Errorf("unknown field %q", text)
	}
	return err
}

// FieldOf returns the field with a text; false: this version has none.
func FieldOf(text string) (f Field, known bool) {
	f, known = byName[text]
	return f, known
}

// Section returns the section that the field belongs to.
func (f Field) Section() string { return Sections[f.SectionPlace()] }

// SectionPlace returns the place of that section in Sections.
func (f Field) SectionPlace() int { return sectionPlaces[f] }

// IsRaw reports whether Motorpool fills the field itself, with a value that the vehicle
// reported in another field.
func (f Field) IsRaw() bool { return f == RawCharging || f == RawDTCs || f.IsOfArrival() }

// IsOfArrival reports whether readings of the field are dated by their arrival. These are for
// Forbids alone.
func (f Field) IsOfArrival() bool { return f == ArrivedSpeed || f == SpeedByArrival }

// fields has the text and the parser of each field. Ranges are those of the physical quantity, or
// of the standard named next to it; a value outside is a fault of the sender [TEL-4].
var fields = [fieldCount]struct {
	name  string
	parse parser
}{
	Latitude:   {"location.latitude", number(-90, 90)},
	Longitude:  {"location.longitude", number(-180, 180)},
	Heading:    {"location.heading", number(0, 360)},
	LocatedAt:  {"location.timestamp", instant},
	SpeedKmh:   {"telemetry.speed_kmh", number(0, 400)},
	MileageKm:  {"telemetry.mileage_km", number(0, 5_000_000)},
	Ignition:   {"telemetry.ignition", oneOf("on", "off")},
	Gear:       {"telemetry.gear", oneOf("P", "R", "N", "D")},
	ParkBrake:  {"telemetry.parking_brake", oneOf("engaged", "released")},
	FuelLevel:  {"telemetry.fuel_level_percent", number(0, 100)},
	Battery:    {"telemetry.battery_level_percent", number(0, 100)},
	RangeKm:    {"telemetry.remaining_range_km", number(0, 5_000)},
	Charging:   {"telemetry.charging_status", oneOf("charging", "disconnected", "fault")},
	OnboardV:   {"telemetry.onboard_voltage_v", number(0, 60)},
	IsLocked:   {"telemetry.is_locked", boolean},
	EngineRuns: {"telemetry.is_engine_running", boolean},
	Sunroof:    {"telemetry.sunroof", oneOf("open", "closed", "tilted")},
	KeyStatus:  {"telemetry.key_status", oneOf("in", "out")},

	DoorFrontLeft:  {"telemetry.doors.front_left", oneOf("open", "closed")},
	DoorFrontRight: {"telemetry.doors.front_right", oneOf("open", "closed")},
	DoorRearLeft:   {"telemetry.doors.rear_left", oneOf("open", "closed")},
	DoorRearRight:  {"telemetry.doors.rear_right", oneOf("open", "closed")},
	DoorTrunk:      {"telemetry.doors.trunk", oneOf("open", "closed")},

	WindowFrontLeft:  {"telemetry.windows.front_left", oneOf("open", "closed", "partially_open")},
	WindowFrontRight: {"telemetry.windows.front_right", oneOf("open", "closed", "partially_open")},
	WindowRearLeft:   {"telemetry.windows.rear_left", oneOf("open", "closed", "partially_open")},
	WindowRearRight:  {"telemetry.windows.rear_right", oneOf("open", "closed", "partially_open")},

	SeatbeltDriver:    {"telemetry.seatbelts.driver", oneOf("fastened", "unfastened")},
	SeatbeltPassenger: {"telemetry.seatbelts.passenger", oneOf("fastened", "unfastened")},

	DTCs:         {"diagnostics.dtcs", texts(dtcPattern)},
	ServiceDueKm: {"diagnostics.service_due_in_km", number(-1_000_000, 1_000_000)}, // < 0: overdue
	OilLife:      {"diagnostics.oil_life_percent", number(0, 100)},
	WarningLamps: {"diagnostics.warning_lamps", texts(lampPattern)},

	// The reporting range of 3GPP TS 36.133 §9.1.4.
	RSRP:     {"connectivity.rsrp_dbm", number(-156, -31)},
	Firmware: {"connectivity.firmware_version", text},

	OEMData:     {"oem_data", object},
	RawCharging: {"oem_data.charging_status", text},
	RawDTCs:     {"oem_data.dtcs_raw", texts(anyText)},

	ArrivedSpeed:   {"telemetry.arrived_speed_kmh", number(0, 400)},
	SpeedByArrival: {"telemetry.speed_by_arrival", boolean},
}

// IsDTC reports whether a trouble code has the form of SAE J2012.
func IsDTC(code string) bool { return dtcPattern.MatchString(code) }

// Fields lists every field, sorted by its text.
var Fields = func() (list []Field) {
	for f := Field(1); f < fieldCount; f++ {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b Field) int { return strings.Compare(a.String(), b.String()) })
	return list
}()

var byName = func() map[string]Field {
	found := map[string]Field{}
	for _, f := range Fields {
		found[f.String()] = f
	}
	return found
}()

var sectionPlaces = func() (places [fieldCount]int) {
	for _, f := range Fields {
		section, _, _ := strings.Cut(f.String(), ".")
		places[f] = slices.Index(Sections, section)
	}
	return places
}()

var (
	dtcPattern  = regexp.MustCompile(`^[PCBU][0-3][0-9A-F]{3}$`) // SAE J2012
	lampPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	anyText     = regexp.MustCompile(`^[^\x00]{1,256}$`)
)
