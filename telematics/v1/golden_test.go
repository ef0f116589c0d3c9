package v1

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/wiretest"
)

// now is the time of the tests of this package.
var now = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

const minute = time.Minute

// aCommand has an id that is easy to recognise.
var aCommand = uuid.MustParse("0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c")

const goldenUnit telematics.Unit = "356938035643809"

// received is when the golden messages arrive.
var received = now.Add(3 * time.Second)

func TestGoldenAnswers_AreDecodedAndEncodedByteForByte(t *testing.T) {
	at := now.Add(2310 * time.Millisecond)
	said := func(values map[telematics.Field]any) *telematics.Report {
		return &telematics.Report{At: at.Add(-10 * time.Millisecond), Values: values}
	}
	for file, want := range map[string]telematics.Answer{
		"answer-received.json": {Command: aCommand, State: telematics.Received, At: now.Add(300 * time.Millisecond)},
		"answer-succeeded.json": {
			Command: aCommand, State: telematics.Succeeded, At: at, Report: said(map[telematics.Field]any{telematics.IsLocked: true}),
		},
		"answer-rejected.json": {Command: aCommand, State: telematics.Rejected, At: at, Reason: telematics.StateConflict,
			Detail: telematics.Moving,
			Report: said(map[telematics.Field]any{telematics.SpeedKmh: 50.0})},
		"answer-failed.json": {Command: aCommand, State: telematics.Failed, At: at, Detail: "disable-driving",
			Report: said(map[telematics.Field]any{telematics.IsLocked: false, telematics.DoorTrunk: "open"})},
		"answer-traced.json": {Command: aCommand, State: telematics.Received, At: now.Add(300 * time.Millisecond),
			Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	} {
		got, dropped, err := DecodeAnswer(wiretest.Golden(t, file, EncodeAnswer(want)), received)
		if err != nil || len(dropped) != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decoded as %+v, dropped %v, %v", file, got, dropped, err)
		}
	}
}

// [ACK-5]
func TestDecodeAnswer_InvalidTraceIsDroppedAndTheAnswerKept(t *testing.T) {
	for tp, want := range map[string]string{
		`"00-x"`: "00-x", `null`: "", `7`: "", `{"a":[1]}`: "", `"a\u0000b"`: "",
		`"` + strings.Repeat("0", 129) + `"`: "",
	} {
		message := `{"command_id":"` + aCommand.String() + `","status":"received","at":"2026-01-02T10:00:00.300Z","tp":` + tp + `}`
		got, _, err := DecodeAnswer([]byte(message), received)
		if err != nil || got.Trace != want || got.Command != aCommand {
			t.Errorf("traceparent %s: %+v, %v", tp, got, err)
		}
	}
}

func TestGoldenReports_AreDecodedAndEncodedByteForByte(t *testing.T) {
	full := telematics.Report{At: now, Values: map[telematics.Field]any{telematics.RSRP: -97.0}}
	for name, c := range interfaceFields {
		field, _ := telematics.FieldOf(name)
		full.Values[field] = c.want
	}
	for file, want := range map[string]telematics.Report{
		"report-full.json": full,
		"report-partial.json": {
			At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: 0.0, telematics.Ignition: "off", telematics.RSRP: nil},
		},
		"report-repeats-answers.json": {At: now.Add(minute), Values: map[telematics.Field]any{telematics.IsLocked: true},
			Answers: []telematics.Answer{
				{Command: aCommand, State: telematics.Succeeded, At: now.Add(2310 * time.Millisecond)},
				{Command: [16]byte{15: 1}, State: telematics.Rejected, At: now.Add(-time.Hour), Reason: telematics.OutOfOrder},
			}},
	} {
		got, dropped, err := DecodeReport(wiretest.Golden(t, file, EncodeReport(want)), now.Add(2*minute))
		for _, raw := range []telematics.Field{telematics.RawCharging, telematics.RawDTCs} {
			// A null in the raw field only says that it has no value.
			if v, ok := got.Values[raw]; ok && v == nil {
				delete(got.Values, raw)
			}
		}
		if err != nil || len(dropped) != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decoded as %+v, dropped %v, %v", file, got, dropped, err)
		}
	}
}

// [TEL-1]
func TestGoldenReports_NullOfAGroupClearsItsFields(t *testing.T) {
	got, dropped, err := DecodeReport(wiretest.Golden(t, "report-null-section.json", nil), received)
	want := telematics.Report{At: now, Values: map[telematics.Field]any{
		telematics.Latitude: nil, telematics.Longitude: nil, telematics.Heading: nil,
		telematics.LocatedAt: nil, telematics.DoorFrontLeft: nil, telematics.DoorFrontRight: nil,
		telematics.DoorRearLeft: nil, telematics.DoorRearRight: nil, telematics.DoorTrunk: nil,
		telematics.SpeedKmh: nil, telematics.Charging: nil, telematics.RawCharging: nil,
		telematics.DTCs: nil, telematics.RawDTCs: nil, telematics.OEMData: nil,
	}}
	if err != nil || len(dropped) != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded as %+v, dropped %v, %v", got, dropped, err)
	}
}

// [TEL-4] [TEL-5]
func TestGoldenReports_ValidPartsOfAHostileReportAreKept(t *testing.T) {
	got, dropped, err := DecodeReport(wiretest.Golden(t, "report-hostile.json", nil), received)
	want := telematics.Report{
		At: received, // it is dated 2031
		Values: map[telematics.Field]any{
			telematics.MileageKm: 15230.4, telematics.Gear: "D", telematics.DoorTrunk: "open",
			telematics.Charging: nil, telematics.RawCharging: "plugged_in",
			telematics.DTCs: []string{"P0420"}, telematics.RawDTCs: []string{"12-34"},
		},
		Answers: []telematics.Answer{{Command: aCommand, State: telematics.Succeeded, At: now.Add(2310 * time.Millisecond)}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded as %+v, %v", got, err)
	}
	var names []string
	for _, d := range dropped {
		names = append(names, d.Field)
	}
	wantNames := []string{
		"at", // it is years ahead
		"location.heading", "location.latitude", "location.timestamp",
		"telemetry.doors.front_left", "telemetry.ignition", "telemetry.is_locked", "telemetry.speed_kmh", "telemetry.windows",
		"diagnostics.oil_life_percent", "diagnostics.warning_lamps",
		"connectivity.firmware_version", "connectivity.rsrp_dbm", "oem_data",
		"diagnostics.dtcs", // the 7 in the list of codes
		"location",         // a latitude without a longitude
		"commands", "commands", "commands",
	}
	assert.EqualSlices(t, names, wantNames, "dropped")
}

func TestGoldenPresences_AreDecodedAndEncodedByteForByte(t *testing.T) {
	for file, want := range map[string]telematics.Presence{
		"presence-online.json": {
			Status: telematics.Online, Session: "f3a9c1d07b5e2846", At: now, Firmware: "4.2.1",
			Actions: append(slices.Clone(telematics.ControlActions), telematics.ReportState), Keys: []string{"fleet-1", "fleet-2"},
		},
		"presence-standby.json": {Status: telematics.Standby, Session: "f3a9c1d07b5e2846", At: now.Add(minute)},
		// A last will has no time.
		"presence-offline.json": {Status: telematics.Offline, Session: "f3a9c1d07b5e2846"},
	} {
		got, err := DecodePresence(wiretest.Golden(t, file, EncodePresence(want)), now.Add(2*minute))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decoded as %+v, %v", file, got, err)
		}
	}
}
