package simulator

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"motorpool/telematics"
)

var (
	doors = []telematics.Field{
		telematics.DoorFrontLeft, telematics.DoorFrontRight, telematics.DoorRearLeft, telematics.DoorRearRight, telematics.DoorTrunk,
	}
	windows = []telematics.Field{
		telematics.WindowFrontLeft, telematics.WindowFrontRight, telematics.WindowRearLeft, telematics.WindowRearRight,
	}
	seatbelts = []telematics.Field{telematics.SeatbeltDriver, telematics.SeatbeltPassenger}
)

// Report returns everything that the vehicle reports of itself, dated by the car's clock.
func (b *Body) Report(at time.Time) telematics.Report {
	at = at.UTC().Truncate(time.Millisecond)
	values := map[telematics.Field]any{
		telematics.Latitude:     round(b.Latitude, 6),
		telematics.Longitude:    round(b.Longitude, 6),
		telematics.Heading:      math.Mod(round(b.Heading, 0), 360),
		telematics.MileageKm:    round(b.MileageKm, 1),
		telematics.Ignition:     either(b.Ignition, "on", "off"),
		telematics.Gear:         b.Gear,
		telematics.ParkBrake:    either(b.ParkBrake, "engaged", "released"),
		telematics.RangeKm:      round(b.FullRangeKm*b.EnergyPercent/100, 0),
		telematics.OnboardV:     round(b.voltage(), 2),
		telematics.IsLocked:     b.Locked,
		telematics.EngineRuns:   b.EngineRuns(),
		telematics.KeyStatus:    either(b.KeyIn, "in", "out"),
		telematics.DTCs:         append([]string{}, b.DTCs...),
		telematics.ServiceDueKm: round(b.ServiceDueKm, 0),
		telematics.WarningLamps: append([]string{}, b.WarningLamps...),
		telematics.RSRP:         round(b.RSRP, 0),
		telematics.Firmware:     b.Firmware,
		telematics.OEMData:      b.oem(),
		telematics.SpeedKmh:     round(b.SpeedKmh, 1),
	}
	if b.SpeedUnknown {
		values[telematics.SpeedKmh] = nil
	}
	if at.Unix() > 0 { // a clock that is not set cannot date a position
		values[telematics.LocatedAt] = at
	}
	b.energy(values)
	for _, f := range slices.Concat(doors, windows, []telematics.Field{telematics.Sunroof}) {
		values[f] = either(slices.Contains(b.Opened, f), "open", "closed")
	}
	for _, f := range seatbelts {
		values[f] = either(slices.Contains(b.Fastened, f), "fastened", "unfastened")
	}
	for _, f := range b.Unreported {
		delete(values, f)
	}
	return telematics.Report{At: at, Values: values}
}

func (b *Body) energy(values map[telematics.Field]any) {
	if b.Powertrain.PlugsIn() {
		values[telematics.Battery] = round(*b.battery(), 1)
		values[telematics.Charging] = b.Charging
	}
	if b.Powertrain.Burns() {
		values[telematics.FuelLevel] = round(b.EnergyPercent, 1)
		values[telematics.OilLife] = round(b.OilLife, 0)
	}
}

func (b *Body) oem() map[string]any {
	data := map[string]any{"immobilizer": string(cmp.Or(b.Immobilizer, Released))}
	if b.HasTopCase {
		data["top_case"] = either(b.TopCase, "open", "closed")
	}
	return data
}

// selectFields returns the report cut down to some fields.
func selectFields(r telematics.Report, fields []telematics.Field) telematics.Report {
	maps.DeleteFunc(r.Values, func(f telematics.Field, _ any) bool { return !slices.Contains(fields, f) })
	return r
}

var position = []telematics.Field{telematics.Latitude, telematics.Longitude, telematics.LocatedAt}

// changed returns the fields in which the later of two reports differs. If half of a position
// differs, it returns the whole position.
func changed(before, after telematics.Report) telematics.Report {
	whole := maps.Clone(after.Values)
	maps.DeleteFunc(after.Values, func(f telematics.Field, value any) bool {
		was, known := before.Values[f]
		return known && reflect.DeepEqual(was, value)
	})
	if slices.ContainsFunc(position, func(f telematics.Field) bool { return after.Values[f] != nil }) {
		for _, f := range position {
			if value, known := whole[f]; known {
				after.Values[f] = value
			}
		}
	}
	return after
}

func either[T any](is bool, yes, no T) T {
	if is {
		return yes
	}
	return no
}

func round(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(x*scale) / scale
}
