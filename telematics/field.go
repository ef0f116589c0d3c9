package telematics

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Field is one thing that a vehicle reports, named by its place in the vehicle
// status: section, an optional group, and name.
type Field string

const (
	Latitude   Field = "location.latitude"
	Longitude  Field = "location.longitude"
	Heading    Field = "location.heading" // degrees
	LocatedAt  Field = "location.timestamp"
	SpeedKmh   Field = "telemetry.speed_kmh"
	MileageKm  Field = "telemetry.mileage_km"
	Ignition   Field = "telemetry.ignition"
	Gear       Field = "telemetry.gear"
	ParkBrake  Field = "telemetry.parking_brake"
	FuelLevel  Field = "telemetry.fuel_level_percent"
	Battery    Field = "telemetry.battery_level_percent"
	RangeKm    Field = "telemetry.remaining_range_km"
	Charging   Field = "telemetry.charging_status"
	OnboardV   Field = "telemetry.onboard_voltage_v"
	IsLocked   Field = "telemetry.is_locked"
	EngineRuns Field = "telemetry.is_engine_running"
	Sunroof    Field = "telemetry.sunroof"
	KeyStatus  Field = "telemetry.key_status"

	DoorFrontLeft  Field = "telemetry.doors.front_left"
	DoorFrontRight Field = "telemetry.doors.front_right"
	DoorRearLeft   Field = "telemetry.doors.rear_left"
	DoorRearRight  Field = "telemetry.doors.rear_right"
	DoorTrunk      Field = "telemetry.doors.trunk"

	WindowFrontLeft  Field = "telemetry.windows.front_left"
	WindowFrontRight Field = "telemetry.windows.front_right"
	WindowRearLeft   Field = "telemetry.windows.rear_left"
	WindowRearRight  Field = "telemetry.windows.rear_right"

	SeatbeltDriver    Field = "telemetry.seatbelts.driver"
	SeatbeltPassenger Field = "telemetry.seatbelts.passenger"

	DTCs         Field = "diagnostics.dtcs"
	ServiceDueKm Field = "diagnostics.service_due_in_km"
	OilLife      Field = "diagnostics.oil_life_percent"
	WarningLamps Field = "diagnostics.warning_lamps"

	RSRP     Field = "connectivity.rsrp_dbm"
	Firmware Field = "connectivity.firmware_version"

	OEMData Field = "oem_data"
	// Values that do not fit the interface's field are kept here unchanged, and
	// shown inside oem_data.
	RawCharging Field = "oem_data.charging_status"
	RawDTCs     Field = "oem_data.dtcs_raw"

	// The speed that arrived last, dated by its arrival, and the arrival of the last one whose time
	// in SpeedKmh is that of its arrival, too. Forbids compares them; they are not shown.
	ArrivedSpeed   Field = "telemetry.arrived_speed_kmh"
	SpeedByArrival Field = "telemetry.speed_by_arrival"
)

// Sections lists the sections of a report and of a vehicle status.
var Sections = []string{"location", "telemetry", "diagnostics", "connectivity", "oem_data"}

// Section returns the section that the field belongs to.
func (f Field) Section() string {
	section, _, _ := strings.Cut(string(f), ".")
	return section
}

// IsRaw reports whether Motorpool fills the field itself, with a value that the vehicle
// reported in another field.
func (f Field) IsRaw() bool { return f == RawCharging || f == RawDTCs || f.IsOfArrival() }

// IsOfArrival reports whether readings of the field are dated by their arrival. These are for
// Forbids alone.
func (f Field) IsOfArrival() bool { return f == ArrivedSpeed || f == SpeedByArrival }

// fields has the parser of each field. Ranges are those of the physical quantity, or of the
// standard named next to it; a value outside is a fault of the sender [TEL-4].
var fields = map[Field]parser{
	Latitude:   number(-90, 90),
	Longitude:  number(-180, 180),
	Heading:    number(0, 360),
	LocatedAt:  instant,
	SpeedKmh:   number(0, 400),
	MileageKm:  number(0, 5_000_000),
	Ignition:   oneOf("on", "off"),
	Gear:       oneOf("P", "R", "N", "D"),
	ParkBrake:  oneOf("engaged", "released"),
	FuelLevel:  number(0, 100),
	Battery:    number(0, 100),
	RangeKm:    number(0, 5_000),
	Charging:   oneOf("charging", "disconnected", "fault"),
	OnboardV:   number(0, 60),
	IsLocked:   boolean,
	EngineRuns: boolean,
	Sunroof:    oneOf("open", "closed", "tilted"),
	KeyStatus:  oneOf("in", "out"),

	DoorFrontLeft:  oneOf("open", "closed"),
	DoorFrontRight: oneOf("open", "closed"),
	DoorRearLeft:   oneOf("open", "closed"),
	DoorRearRight:  oneOf("open", "closed"),
	DoorTrunk:      oneOf("open", "closed"),

	WindowFrontLeft:  oneOf("open", "closed", "partially_open"),
	WindowFrontRight: oneOf("open", "closed", "partially_open"),
	WindowRearLeft:   oneOf("open", "closed", "partially_open"),
	WindowRearRight:  oneOf("open", "closed", "partially_open"),

	SeatbeltDriver:    oneOf("fastened", "unfastened"),
	SeatbeltPassenger: oneOf("fastened", "unfastened"),

	DTCs:         texts(dtcPattern),
	ServiceDueKm: number(-1_000_000, 1_000_000), // negative: overdue
	OilLife:      number(0, 100),
	WarningLamps: texts(lampPattern),

	RSRP:     number(-156, -31), // the reporting range of 3GPP TS 36.133 §9.1.4
	Firmware: text,

	OEMData:     object,
	RawCharging: text,
	RawDTCs:     texts(anyText),

	ArrivedSpeed:   number(0, 400),
	SpeedByArrival: boolean,
}

// IsDTC reports whether a trouble code has the form of SAE J2012.
func IsDTC(code string) bool { return dtcPattern.MatchString(code) }

// Fields lists every field, sorted.
var Fields = slices.Sorted(maps.Keys(fields))

var (
	dtcPattern  = regexp.MustCompile(`^[PCBU][0-3][0-9A-F]{3}$`) // SAE J2012
	lampPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	anyText     = regexp.MustCompile(`^[^\x00]{1,256}$`)
)
