package samples

import (
	"math"
	"time"

	"motorpool/telematics"
)

// Field is one of the fields of a sample.
type Field int

// The fields of a sample.
const (
	Energy   Field = iota // percent: of the battery of an electric vehicle, else of the tank
	Voltage               // V, of the 12 V battery
	Speed                 // km/h
	Signal                // dBm, RSRP
	Latitude              // degrees
	Longitude
	Locked   // 0 or 1
	Ignition // 0 or 1
	fields
)

// steps is the resolution of each field: the number of steps in one percent, volt, degree.
var steps = [fields]float64{Energy: 10, Voltage: 100, Speed: 10, Signal: 1, Latitude: 1e6, Longitude: 1e6, Locked: 1, Ignition: 1}

// Step returns the number of steps of the field's resolution in one percent, volt or degree.
func (f Field) Step() float64 { return steps[f] }

// Sample holds the first value of each field that a vehicle reported in an interval.
type Sample struct {
	Vehicle telematics.VehicleID
	Agency  telematics.AgencyID // that had the vehicle then
	Begin   time.Time           // of the interval
	At      time.Time           // of the first report in it

	values [fields]int32
	has    uint8
}

// Value returns the value of a field in steps of its resolution, or nil.
func (s *Sample) Value(f Field) any {
	if s.has&(1<<f) == 0 {
		return nil
	}
	return int64(s.values[f])
}

// set sets a field, unless it has a value already.
func (s *Sample) set(f Field, value int32) {
	if s.has&(1<<f) == 0 {
		s.has |= 1 << f
		s.values[f] = value
	}
}

// join adds the fields that only the other sample, of the same interval, has.
func (s *Sample) join(other *Sample) {
	for f := range fields {
		if other.has&(1<<f) != 0 {
			s.set(f, other.values[f])
		}
	}
}

// read sets the fields that a report has, and reports whether the sample has any.
func (s *Sample) read(r *telematics.Report, p telematics.Powertrain) bool {
	energy := telematics.FuelLevel
	if p == telematics.Electric {
		energy = telematics.Battery
	}
	for f, source := range [fields]telematics.Field{
		Energy: energy, Voltage: telematics.OnboardV, Speed: telematics.SpeedKmh, Signal: telematics.RSRP,
		Latitude: telematics.Latitude, Longitude: telematics.Longitude, Locked: telematics.IsLocked, Ignition: telematics.Ignition,
	} {
		switch value := r.Values[source].(type) {
		case float64: // in its range, which ParseValue has checked
			s.set(Field(f), int32(math.Round(value*steps[f])))
		case bool:
			s.set(Field(f), flag(value))
		case string:
			s.set(Field(f), flag(value == "on"))
		}
	}
	return s.has != 0
}

func flag(is bool) int32 {
	if is {
		return 1
	}
	return 0
}
