package simulator

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// Every value of every demo car is valid for the decoder of the service.
func TestReport_ServiceDecodesEveryFieldOfTheDemoCars(t *testing.T) {
	for id, profile := range demo() {
		body := profile.Body.clone()
		body.Advance(time.Minute, rand.New(rand.NewPCG(1, 1)))
		want := body.Report(epoch)
		got, dropped, err := v1.DecodeReport(v1.EncodeReport(want), epoch)
		if err != nil || len(dropped) != 0 {
			t.Errorf("vehicle %d: %v, dropped %v", id, err, dropped)
		}
		for field, value := range want.Values {
			if _, ok := got.Values[field]; !ok {
				t.Errorf("vehicle %d: the field %s (%v) is missing after decoding", id, field, value)
			}
		}
	}
}

func TestReport_HasEveryFieldOfTheCar(t *testing.T) {
	everything := []telematics.Field{
		telematics.Latitude, telematics.Longitude, telematics.Heading, telematics.LocatedAt, telematics.SpeedKmh,
		telematics.MileageKm, telematics.Ignition, telematics.Gear, telematics.ParkBrake, telematics.RangeKm,
		telematics.OnboardV, telematics.IsLocked, telematics.EngineRuns, telematics.Sunroof, telematics.KeyStatus,
		telematics.DTCs, telematics.ServiceDueKm, telematics.WarningLamps, telematics.RSRP, telematics.Firmware, telematics.OEMData,
	}
	everything = slices.Concat(everything, doors, windows, seatbelts)
	fuel := []telematics.Field{telematics.FuelLevel, telematics.OilLife}
	electric := []telematics.Field{telematics.Battery, telematics.Charging}
	for id, want := range map[telematics.VehicleID][]telematics.Field{
		1: append(slices.Clone(everything), fuel...),
		2: append(slices.Clone(everything), electric...),
		7: append(append(slices.Clone(everything), fuel...), electric...),
	} {
		profile, _ := Demo(id)
		values := profile.Body.Report(epoch).Values
		for _, field := range want {
			if values[field] == nil {
				t.Errorf("vehicle %d does not report %s", id, field)
			}
		}
		assert.Equal(t, len(values), len(want), "fields that vehicle %d reports", id)
	}
}

func TestReport_VanHasNoWindowsAndScooterNoDoors(t *testing.T) {
	for id, absent := range map[telematics.VehicleID]string{3: "telemetry.doors", 4: "telemetry.windows"} {
		profile, _ := Demo(id)
		for field := range profile.Body.Report(epoch).Values {
			if strings.HasPrefix(field.String(), absent) {
				t.Errorf("vehicle %d reports %s, want no such field", id, field)
			}
		}
	}
}

func TestReport_UnknownSpeedIsNull(t *testing.T) {
	body := Hatchback(munich)
	body.SpeedUnknown = true
	value, said := body.Report(epoch).Values[telematics.SpeedKmh]
	if !said || value != nil {
		t.Errorf("speed %v, present %t; want null", value, said)
	}
}

func TestReport_UnsetClockDatesNoPosition(t *testing.T) {
	body := Hatchback(munich)
	report := body.Report(Clock{Unset: true}.Read(epoch).Clock)
	if _, dropped, err := v1.DecodeReport(v1.EncodeReport(report), epoch); err != nil || len(dropped) != 1 ||
		dropped[0].Fault != telematics.WrongTime {
		t.Errorf("dropped %v, %v; want only the time", dropped, err)
	}
}

func TestChanged_HasOnlyChangedFieldsAndWholePositions(t *testing.T) {
	body := Hatchback(munich)
	before := body.Report(epoch)
	if same := changed(before, body.Report(epoch)); len(same.Values) != 0 {
		t.Errorf("without a change: %v, want no field", same.Values)
	}
	body.Opened = []telematics.Field{telematics.DoorTrunk}
	body.Latitude += 0.01
	got := changed(before, body.Report(epoch)).Values
	want := []telematics.Field{telematics.DoorTrunk, telematics.Latitude, telematics.Longitude, telematics.LocatedAt}
	if len(got) != len(want) || got[telematics.DoorTrunk] != "open" || got[telematics.Longitude] == nil ||
		got[telematics.LocatedAt] == nil {
		t.Errorf("changed fields: %v, want %v", got, want)
	}
}
