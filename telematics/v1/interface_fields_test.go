package v1

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"motorpool/telematics"
)

// interfaceFields are the fields of the vehicle status in the interface, each with a value that a
// unit may send.
var interfaceFields = map[string]struct {
	json string
	want any
}{
	"location.latitude":               {`48.1371`, 48.1371},
	"location.longitude":              {`11.5754`, 11.5754},
	"location.heading":                {`270`, 270.0},
	"location.timestamp":              {`"2026-01-02T11:00:00.1239+01:00"`, now.Add(123 * time.Millisecond)},
	"telemetry.speed_kmh":             {`50.5`, 50.5},
	"telemetry.mileage_km":            {`15230.4`, 15230.4},
	"telemetry.ignition":              {`"off"`, "off"},
	"telemetry.gear":                  {`"P"`, "P"},
	"telemetry.parking_brake":         {`"engaged"`, "engaged"},
	"telemetry.fuel_level_percent":    {`61`, 61.0},
	"telemetry.battery_level_percent": {`80`, 80.0},
	"telemetry.remaining_range_km":    {`312`, 312.0},
	"telemetry.charging_status":       {`"charging"`, "charging"},
	"telemetry.onboard_voltage_v":     {`12.6`, 12.6},
	"telemetry.is_locked":             {`true`, true},
	"telemetry.is_engine_running":     {`false`, false},
	"telemetry.doors.front_left":      {`"closed"`, "closed"},
	"telemetry.doors.front_right":     {`"open"`, "open"},
	"telemetry.doors.rear_left":       {`"closed"`, "closed"},
	"telemetry.doors.rear_right":      {`"closed"`, "closed"},
	"telemetry.doors.trunk":           {`"closed"`, "closed"},
	"telemetry.windows.front_left":    {`"closed"`, "closed"},
	"telemetry.windows.front_right":   {`"partially_open"`, "partially_open"},
	"telemetry.windows.rear_left":     {`"closed"`, "closed"},
	"telemetry.windows.rear_right":    {`"open"`, "open"},
	"telemetry.sunroof":               {`"tilted"`, "tilted"},
	"telemetry.seatbelts.driver":      {`"fastened"`, "fastened"},
	"telemetry.seatbelts.passenger":   {`"unfastened"`, "unfastened"},
	"telemetry.key_status":            {`"out"`, "out"},
	"diagnostics.dtcs":                {`["P0420"]`, []string{"P0420"}},
	"diagnostics.service_due_in_km":   {`-200`, -200.0},
	"diagnostics.oil_life_percent":    {`61`, 61.0},
	"diagnostics.warning_lamps":       {`["tire_failure"]`, []string{"tire_failure"}},
	"connectivity.firmware_version":   {`"4.2.1"`, "4.2.1"},
	"oem_data":                        {`{"a":{"b":[1,"x",null]}}`, map[string]any{"a": map[string]any{"b": []any{1.0, "x", nil}}}},
}

// Units do not report the fields that the platform sets: vehicle_id, status, location.address,
// connectivity.status, .last_seen and .signal_quality. In addition to the interface, a unit reports
// its signal strength, two fields keep their raw values, and two keep the speed by its arrival.
var beyondTheInterface = []telematics.Field{
	telematics.RSRP, telematics.RawCharging, telematics.RawDTCs, telematics.ArrivedSpeed, telematics.SpeedByArrival,
}

func TestFields_TableHasAllOfTheInterface(t *testing.T) {
	for name, c := range interfaceFields {
		field, _ := telematics.FieldOf(name)
		got, err := telematics.ParseValue(field, json.RawMessage(c.json))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: parsed as %v (%T), %v; want %v", field, got, got, err, c.want)
		}
		for _, null := range []string{"null", " null\n"} {
			if got, err := telematics.ParseValue(field, json.RawMessage(null)); got != nil || err != nil {
				t.Errorf("%s: %q is parsed as %v, %v; want no value", field, null, got, err)
			}
		}
	}
	for _, field := range telematics.Fields {
		_, listed := interfaceFields[field.String()]
		if listed == slices.Contains(beyondTheInterface, field) {
			t.Errorf("%s: in the interface %t, which differs from the table", field, listed)
		}
		if !slices.Contains(telematics.Sections, field.Section()) {
			t.Errorf("%s has no section", field)
		}
	}
}
