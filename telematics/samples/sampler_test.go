package samples

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
)

var start = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

// world is a sampler with the counts of what it has dropped.
type world struct {
	*testing.T
	*Sampler
	dropped map[Reason]int
}

func newWorld(t *testing.T, keep time.Duration) *world {
	w := &world{T: t, dropped: map[Reason]int{}}
	w.Sampler = New(keep, func(r Reason, n int) { w.dropped[r] += n })
	return w
}

type values = map[telematics.Field]any

// report adds a report of vehicle 1 that is dated some seconds after the start, and arrives now.
func (w *world) report(seconds int, v values) {
	at := start.Add(time.Duration(seconds) * time.Second)
	w.Add(1, 7, telematics.Electric, &telematics.Report{At: at, Values: v}, at)
}

// want checks the samples so far, in order of time: their beginnings and fields.
func (w *world) want(want ...string) {
	w.Helper()
	drained := w.Drain()
	slices.SortFunc(drained, func(a, b *Sample) int { return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.Vehicle, b.Vehicle)) })
	var got []string
	for _, s := range drained {
		text := []string{s.Begin.Format("15:04:05")}
		for f, name := range []string{"energy", "voltage", "speed", "signal", "latitude", "longitude", "locked", "ignition"} {
			if value := s.Value(Field(f)); value != nil {
				text = append(text, fmt.Sprintf("%s=%v", name, value))
			}
		}
		got = append(got, strings.Join(text, " "))
	}
	if !slices.Equal(got, want) {
		w.Errorf("samples\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSampler_StandingVehicleHasASampleEveryFiveMinutes(t *testing.T) {
	w := newWorld(t, time.Hour)
	for second := 0; second < 600; second += 20 {
		w.report(
			second,
			values{telematics.Battery: 80.04, telematics.OnboardV: 12.345, telematics.Ignition: "off", telematics.SpeedKmh: 0.0},
		)
	}
	w.want("10:00:00 energy=800 voltage=1235 speed=0 ignition=0", "10:05:00 energy=800 voltage=1235 speed=0 ignition=0")
}

func TestSampler_TripHasASampleEvery15SecondsAndOneAtItsEnd(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.report(0, values{telematics.Ignition: "off"})
	for second := 62; second < 87; second += 5 {
		w.report(second, values{telematics.Ignition: "on", telematics.SpeedKmh: float64(second)})
	}
	for second := 87; second < 200; second += 5 {
		w.report(second, values{telematics.Ignition: "off", telematics.SpeedKmh: 0.0})
	}
	w.want("10:00:00 ignition=0", "10:01:02 speed=620 ignition=1", "10:01:15 speed=770 ignition=1",
		"10:01:27 speed=0 ignition=0")
}

func TestSampler_ChangeOfTheLockHasASample(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.report(1, values{telematics.IsLocked: true})
	w.report(31, values{telematics.IsLocked: false})
	w.report(40, values{telematics.IsLocked: true})
	w.report(61, values{telematics.IsLocked: true})
	w.report(70, values{telematics.IsLocked: true})
	w.want("10:00:00 locked=1", "10:00:31 locked=0", "10:01:01 locked=1")
}

// A unit may send each value in a separate message, also in the second of its latest sample.
func TestSampler_ADriveMayEndInTheSecondOfASample(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.report(45, values{telematics.Ignition: "on", telematics.SpeedKmh: 50.0, telematics.IsLocked: false})
	for _, v := range []values{
		{telematics.SpeedKmh: 9.0}, {telematics.Ignition: "off"}, {telematics.SpeedKmh: 0.0}, {telematics.IsLocked: true},
	} {
		w.report(60, v)
	}
	for second := 75; second < 300; second += 15 {
		w.report(second, values{telematics.OnboardV: 12.3})
	}
	w.want("10:00:45 speed=500 locked=0 ignition=1", "10:01:00 speed=90", "10:01:01 speed=0 locked=1 ignition=0",
		"10:01:15 voltage=1230")
}

// A unit may send each value in a separate message.
func TestSampler_CollectsTheFieldsOfAnInterval(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.report(1, values{telematics.Latitude: 48.1234567})
	w.report(2, values{telematics.Longitude: -11.5})
	w.want("10:00:00 latitude=48123457 longitude=-11500000")
	w.report(3, values{telematics.Latitude: 48.2, telematics.RSRP: -95.0})
	// The store keeps the first latitude of an interval.
	w.want("10:00:00 signal=-95 latitude=48200000")
	w.report(4, values{telematics.RSRP: -90.0})
	w.want()
}

func TestSampler_StoredReportIsSampledAtItsOwnTime(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.report(1800, values{telematics.Battery: 50.0})
	w.report(900, values{telematics.Battery: 60.0})
	w.report(930, values{telematics.Battery: 59.0, telematics.SpeedKmh: 50.0})
	w.report(1801, values{telematics.Battery: 49.0})
	w.want("10:15:00 energy=600", "10:15:30 energy=590 speed=500", "10:30:00 energy=500")
}

func TestSampler_DropsReportsOlderThanTheHistory(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.Add(1, 7, telematics.Electric, &telematics.Report{At: start, Values: values{telematics.Battery: 50.0}}, start.Add(time.Hour))
	w.want()
	if w.dropped[TooOld] != 1 {
		t.Errorf("dropped: %v", w.dropped)
	}
}

func TestSampler_EnergyOfACombustionVehicleIsItsFuel(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.Add(
		1, 7, telematics.PlugInHybrid,
		&telematics.Report{At: start, Values: values{telematics.Battery: 50.0, telematics.FuelLevel: 60.0}}, start,
	)
	w.want("10:00:00 energy=600")
}

func TestSampler_OverflowIsDroppedAndCounted(t *testing.T) {
	w := newWorld(t, time.Hour)
	for vehicle := range telematics.VehicleID(MaxBuffered + 10) {
		w.Add(vehicle, 7, telematics.Electric, &telematics.Report{At: start, Values: values{telematics.Battery: 50.0}}, start)
	}
	drained := w.Drain()
	w.report(0, values{telematics.OnboardV: 12.0})
	w.PutBack(drained)
	if len(drained) != MaxBuffered || w.Waiting() != MaxBuffered || w.dropped[Full] != 10 {
		t.Errorf("%d drained, %d waiting, dropped %v; want the maximum, the maximum, 10", len(drained), w.Waiting(), w.dropped)
	}
}

// Vehicles that do not report take no memory.
func TestSampler_ForgetsVehiclesThatDoNotReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, time.Hour)
		for range 10 {
			for vehicle := range telematics.VehicleID(100) {
				now := time.Now()
				w.Add(
					vehicle+telematics.VehicleID(now.Unix()), 7, telematics.Electric,
					&telematics.Report{At: now, Values: values{telematics.Battery: 50.0}}, now,
				)
			}
			time.Sleep(2 * Resting)
		}
		if n := len(w.latest) + len(w.before); n > 200 {
			t.Errorf("%d vehicles are kept, want at most 200", n)
		}
	})
}

// An agency must not get a sample of what happened after the vehicle went to another agency.
func TestSampler_IntervalOfTwoAgenciesBelongsToTheFirst(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.report(1, values{telematics.Battery: 80.0})
	w.Add(
		1, 8, telematics.Electric,
		&telematics.Report{At: start.Add(time.Minute), Values: values{telematics.Latitude: 48.1}},
		start.Add(time.Minute),
	)
	w.want("10:00:00 energy=800")
}
