package telematics

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
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
	// What does not fit its field of the interface is kept here in the raw, and
	// shown inside oem_data.
	RawCharging Field = "oem_data.charging_status"
	RawDTCs     Field = "oem_data.dtcs_raw"
)

// Sections lists the sections of a report and of a vehicle status.
var Sections = []string{"location", "telemetry", "diagnostics", "connectivity", "oem_data"}

// Section returns the section that the field belongs to.
func (f Field) Section() string {
	section, _, _ := strings.Cut(string(f), ".")
	return section
}

// isRaw reports whether the field is kept by the receiver, not said by the vehicle
// in this place.
func (f Field) isRaw() bool { return f == RawCharging || f == RawDTCs }

// parser turns a JSON value into float64, string, bool, time.Time, []string or
// map[string]any, or says what is wrong with it.
type parser func(json.RawMessage) (any, error)

// The table of fields. Ranges are what the physical quantity, or the standard
// named beside it, allows; what lies outside is a fault of the sender [TEL-4].
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
}

var (
	dtcPattern  = regexp.MustCompile(`^[PCBU][0-3][0-9A-F]{3}$`) // SAE J2012
	lampPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	anyText     = regexp.MustCompile(`^[^\x00]{1,256}$`)
)

// Limits of what has no range of its own.
const (
	maxText  = 256 // bytes
	maxTexts = 128 // elements of a list
	maxDepth = 16  // of nested OEM data
)

// ParseValue returns the value of a field in the type that Snapshot's accessors
// expect. JSON null is nil: no longer known.
func ParseValue(f Field, raw json.RawMessage) (any, error) {
	parse, ok := fields[f]
	if !ok {
		return nil, fmt.Errorf("unknown field %q", f)
	}
	if isNull(raw) {
		return nil, nil
	}
	return parse(raw)
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

func number(low, high float64) parser {
	return func(raw json.RawMessage) (any, error) {
		var n float64
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, errors.New("not a number")
		}
		if n < low || n > high {
			return nil, outOfRange("%g is outside %g to %g", n, low, high)
		}
		return n, nil
	}
}

func boolean(raw json.RawMessage) (any, error) {
	var b bool
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, errors.New("not true or false")
	}
	return b, nil
}

func text(raw json.RawMessage) (any, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errors.New("not a string")
	}
	if len(s) > maxText || strings.ContainsRune(s, 0) {
		return nil, outOfRange("longer than %d bytes, or holds a NUL", maxText)
	}
	return s, nil
}

func oneOf(allowed ...string) parser {
	return func(raw json.RawMessage) (any, error) {
		s, err := text(raw)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(allowed, s.(string)) {
			return nil, unknownWord("%q is not one of %v", s, allowed)
		}
		return s, nil
	}
}

func texts(pattern *regexp.Regexp) parser {
	return func(raw json.RawMessage) (any, error) {
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, errors.New("not a list of strings")
		}
		if len(list) > maxTexts {
			return nil, outOfRange("more than %d elements", maxTexts)
		}
		for _, s := range list {
			if len(s) > maxText || !pattern.MatchString(s) {
				return nil, unknownWord("%.32q does not match %s", s, pattern)
			}
		}
		return list, nil
	}
}

func instant(raw json.RawMessage) (any, error) {
	var t time.Time
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, errors.New("not an ISO 8601 time")
	}
	if t.Before(earliest) || t.Year() > 9999 {
		return nil, outOfRange("not of this age")
	}
	return t.UTC().Truncate(time.Millisecond), nil
}

func object(raw json.RawMessage) (any, error) {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errors.New("not an object")
	}
	if !storable(m, maxDepth) {
		return nil, outOfRange("nested deeper than %d, or holds a NUL", maxDepth)
	}
	return m, nil
}

// storable reports whether a JSON value can be kept in any store: no NUL, which
// Postgres refuses, and no nesting that exhausts a stack.
func storable(v any, depth int) bool {
	switch v := v.(type) {
	case string:
		return !strings.ContainsRune(v, 0)
	case []any:
		return depth > 0 && !slices.ContainsFunc(v, func(e any) bool { return !storable(e, depth-1) })
	case map[string]any:
		for key, e := range v {
			if depth == 0 || strings.ContainsRune(key, 0) || !storable(e, depth-1) {
				return false
			}
		}
	}
	return true
}
