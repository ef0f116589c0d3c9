package service_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/internal/assert"
	"motorpool/mosquitto"
	"motorpool/simulator"
	modules "motorpool/simulator/ovms"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
)

// ovmsWorld is the service with the MQTT broker of production, and in vehicle 1 a module.
type ovmsWorld struct {
	*instance
	module *modules.Module
	tap    *modules.Tap
}

// doors is how long the vehicle takes to lock.
const doors = 300 * time.Millisecond

// plugIn starts a module in a vehicle.
func plugIn(t *testing.T) ovmsWorld {
	t.Helper()
	const vehicleType = "NL"
	s := newStack(t, 1, newDatabase(t))
	v := &s.fleet.Vehicles[0]
	v.Protocol, v.Installation, v.Powertrain = ovms.Protocol, telematics.Installation{
		ovms.TypeKey: vehicleType, ovms.PINKey: "4711",
	}, telematics.Electric
	s.fleet.Agencies[0].BestEffortUnlock, s.fleet.Agencies[1].BestEffortUnlock = true, true
	v.Actions = []telematics.Action{telematics.Lock, telematics.Unlock}
	s.record()
	startReal(s)
	tap, err := modules.NewTap(s.units)
	s.must(err)
	s.Cleanup(tap.Close)
	const speed = 20
	body := simulator.ElectricCar(simulator.Point{Latitude: 48.1487, Longitude: -11.568})
	body.Locked, body.Opened = false, []telematics.Field{telematics.DoorFrontLeft}
	body.EnergyPercent, body.FullRangeKm, body.ChargePerHour, body.Charging = 71.5, 252, 0, "charging"
	body.MileageKm, body.Heading, body.Gear, body.ParkBrake, body.ServiceDueKm, body.OnboardV = 1234567, 90, "R", true, 12000, 12.6
	w := ovmsWorld{instance: s.serve(), tap: tap, module: modules.New(modules.Config{
		Unit: v.Unit, Password: mosquitto.UnitPassword(unitSecret, string(v.Unit)), Broker: tap.URL(), Type: vehicleType,
		Firmware: "3.3.006-12-gabcdef", Body: body, Speed: speed, Effort: speed * doors, StableWait: time.Second,
	})}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.module.Run(ctx) })
	s.Cleanup(func() { stop(); running.Wait() })
	return w
}

func (w ovmsWorld) status() (s ovmsStatus) {
	w.Helper()
	w.get("/api/v1/admin/vehicles/1/status", &s)
	return s
}

// ovmsStatus has the fields that a module can report.
type ovmsStatus struct {
	Connectivity struct {
		Status   string
		Firmware string `json:"firmware_version"`
	}
	Location  struct{ Latitude, Longitude, Heading float64 }
	Telemetry struct {
		Speed    float64 `json:"speed_kmh"`
		Mileage  float64 `json:"mileage_km"`
		Ignition string
		Gear     string
		Brake    string            `json:"parking_brake"`
		Battery  float64           `json:"battery_level_percent"`
		Range    float64           `json:"remaining_range_km"`
		Charging string            `json:"charging_status"`
		Voltage  float64           `json:"onboard_voltage_v"`
		Locked   *bool             `json:"is_locked"`
		Doors    map[string]string `json:"doors"`
	}
	Diagnostics struct {
		Service float64 `json:"service_due_in_km"`
	}
	OEM map[string]any `json:"oem_data"`
}

// becomes waits for a connectivity: in the status, and in Postgres, by which commands are refused.
func (w ovmsWorld) becomes(connectivity string) {
	w.Helper()
	w.eventually(20*time.Second, connectivity, func() bool {
		var stored []struct{ ID int }
		w.get("/api/v1/admin/vehicles?connectivity="+connectivity, &stored)
		return len(stored) == 1 && w.status().Connectivity.Status == connectivity
	})
}

// heard returns the lines that the service has sent to the shell of the module.
func (w ovmsWorld) heard() (lines []string) {
	for _, p := range modules.PacketsOf[*packets.PublishPacket](w.tap.Arrived()) {
		if p.Retain || p.Qos != 0 { // a retained or queued line would be executed late
			w.Errorf("%s arrived with QoS %d, retained %v", p.TopicName, p.Qos, p.Retain)
		}
		if strings.Contains(p.TopicName, "/command/") {
			lines = append(lines, string(p.Payload))
		}
	}
	return lines
}

// listens waits until the module receives commands.
func (w ovmsWorld) listens() {
	w.Helper()
	w.becomes("online")
	w.eventually(20*time.Second, "the module has subscribed", func() bool {
		return len(modules.PacketsOf[*packets.SubackPacket](w.tap.Arrived())) > 0
	})
}

func TestOVMS_ModuleIsUnderstood(t *testing.T) {
	t.Parallel()
	w := plugIn(t)
	w.listens()
	w.eventually(20*time.Second, "all metrics are stored", func() bool {
		s := w.status()
		return s.Telemetry.Locked != nil && s.OEM != nil && s.Telemetry.Mileage > 0
	})

	// Coordinates are 32-bit floating-point numbers, and 1234567 km is sent as 1.23457e+06.
	want := ovmsStatus{OEM: map[string]any{"ovms_vehicle_type": "NL"}}
	want.Connectivity.Status, want.Connectivity.Firmware = "online", "3.3.006-12-gabcdef"
	want.Location.Latitude, want.Location.Longitude, want.Location.Heading = 48.148701, -11.568, 90
	said := &want.Telemetry
	said.Mileage, said.Ignition, said.Gear, said.Brake, said.Battery, said.Range = 1234570, "off", "R", "engaged", 71.5, 180
	said.Charging, said.Voltage, said.Locked = "charging", 12.6, new(bool)
	said.Doors = map[string]string{
		"front_left": "open", "front_right": "closed", "rear_left": "closed", "rear_right": "closed",
		"trunk": "closed",
	}
	want.Diagnostics.Service = 12000
	assert.DeepEqual(t, w.status(), want, "the status is")

	for _, a := range []telematics.Action{telematics.Lock, telematics.Unlock} {
		r := w.control(1, a)
		if r.status != http.StatusOK || r.took < doors || *w.status().Telemetry.Locked != (a == telematics.Lock) {
			t.Errorf(
				"%s: %d %+v after %v, locked %v: want 200 when the vehicle reports it", a, r.status, r.Error, r.took,
				*w.status().Telemetry.Locked,
			)
		}
	}
	assert.EqualSlices(t, w.heard(), []string{"lock 4711", "unlock 4711"}, "the shell received")

	events := w.follow(w.admin, "")
	w.module.Alert(t.Context(), "alarm.sounding", "Vehicle alarm is sounding")
	w.module.Alert(t.Context(), "batt.12v.alert", "12V Battery critical: 11.1V (ref=12.6V)")
	w.module.Alert(t.Context(), "flatbed.moved", "Vehicle is being transported")
	alarms := func() (all []string) {
		events.mu.Lock()
		defer events.mu.Unlock()
		for _, e := range events.streamed {
			if e.Event == "alarm" {
				all = append(all, e.Alarm.Kind+": "+e.Alarm.Text)
			}
		}
		slices.Sort(all)
		return all
	}
	w.eventually(20*time.Second, "an alarm of each kind", func() bool { return len(alarms()) >= 3 })
	if got, want := alarms(), []string{
		"alarm.sounding: Vehicle alarm is sounding", "batt.12v.alert: 12V Battery critical: 11.1V (ref=12.6V)",
		"flatbed.moved: Vehicle is being transported",
	}; !slices.Equal(got, want) {
		t.Errorf("alarms %q\nwant %q", got, want)
	}
	w.eventually(20*time.Second, "one alert has all alarms", func() bool {
		open := slices.DeleteFunc(w.openAlerts(), func(a listedAlert) bool { return a.Rule != "unit_alarm" })
		if len(open) != 1 {
			return false
		}
		kinds, _ := open[0].Facts["kinds"].([]any)
		return len(kinds) == 3
	})

	network := func(is bool) {
		w.module.Do(t.Context(), func(_ *simulator.Body, f *modules.Faults) { f.Offline = !is })
	}
	network(false)
	w.becomes("offline")
	w.control(1, telematics.Unlock).wants(http.StatusServiceUnavailable, "not_executed")
	network(true)
	w.becomes("online")
	// The MQTT broker has kept the session with its subscriptions. The reports of the module make
	// it online again. They may be faster than its new presence, without which no command is sent
	// to it.
	w.eventually(20*time.Second, "the module receives commands again", func() bool {
		r := w.control(1, telematics.Lock)
		if r.status != http.StatusOK && r.status != http.StatusServiceUnavailable {
			t.Errorf("a command after the reconnection: %d %+v", r.status, r.Error)
		}
		return r.status == http.StatusOK
	})
	before := w.heard()
	if len(before) != 3 {
		t.Errorf("the shell received %q, want no line from the time when it was offline", before)
	}
	// The vehicle reports no change, so the module is asked how old the value is.
	w.control(1, telematics.Lock).wants(http.StatusOK)
	const lock, inquiry = "lock 4711", "metrics list -s v.e.locked"
	if got := w.heard()[len(before):]; !slices.Equal(slices.Compact(got), []string{lock, inquiry}) {
		t.Errorf("after another lock the shell received %q", got)
	}
}
