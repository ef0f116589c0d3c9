package telematics

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden messages anew from what the codec says")

const goldenUnit Unit = "356938035643809"

// received is when the golden messages arrive.
var received = now.Add(3 * time.Second)

func TestGoldenAnswersReadAndWriteToTheByte(t *testing.T) {
	at := now.Add(2310 * time.Millisecond)
	said := func(values map[Field]any) *Report { return &Report{At: at.Add(-10 * time.Millisecond), Values: values} }
	for file, want := range map[string]Answer{
		"answer-received.json":  {Command: aCommand, State: Received, At: now.Add(300 * time.Millisecond)},
		"answer-succeeded.json": {Command: aCommand, State: Succeeded, At: at, Report: said(map[Field]any{IsLocked: true})},
		"answer-rejected.json": {Command: aCommand, State: Rejected, At: at, Reason: StateConflict, Detail: Moving,
			Report: said(map[Field]any{SpeedKmh: 50.0})},
		"answer-failed.json": {Command: aCommand, State: Failed, At: at, Detail: "disable-driving",
			Report: said(map[Field]any{IsLocked: false, DoorTrunk: "open"})},
	} {
		got, dropped, err := DecodeAnswer(golden(t, file, EncodeAnswer(want)), received)
		if err != nil || len(dropped) != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, %v", file, got, dropped, err)
		}
	}
}

func TestGoldenReportsReadAndWriteToTheByte(t *testing.T) {
	full := Report{At: now, Values: map[Field]any{RSRP: -97.0}}
	for field, c := range interfaceFields {
		full.Values[field] = c.want
	}
	for file, want := range map[string]Report{
		"report-full.json":    full,
		"report-partial.json": {At: now, Values: map[Field]any{SpeedKmh: 0.0, Ignition: "off", RSRP: nil}},
		"report-repeats-answers.json": {At: now.Add(minute), Values: map[Field]any{IsLocked: true}, Answers: []Answer{
			{Command: aCommand, State: Succeeded, At: now.Add(2310 * time.Millisecond)},
			{Command: [16]byte{15: 1}, State: Rejected, At: now.Add(-time.Hour), Reason: OutOfOrder},
		}},
	} {
		got, dropped, err := DecodeReport(golden(t, file, EncodeReport(want)), now.Add(2*minute))
		for _, raw := range []Field{RawCharging, RawDTCs} {
			if v, ok := got.Values[raw]; ok && v == nil { // nothing of its field is kept in the raw
				delete(got.Values, raw)
			}
		}
		if err != nil || len(dropped) != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, %v", file, got, dropped, err)
		}
	}
}

// [TEL-1]
func TestTheGoldenNullsEmptyWhatIsBelowThem(t *testing.T) {
	got, dropped, err := DecodeReport(golden(t, "report-null-section.json", nil), received)
	want := Report{At: now, Values: map[Field]any{
		Latitude: nil, Longitude: nil, Heading: nil, LocatedAt: nil,
		DoorFrontLeft: nil, DoorFrontRight: nil, DoorRearLeft: nil, DoorRearRight: nil, DoorTrunk: nil,
		SpeedKmh: nil, Charging: nil, RawCharging: nil, DTCs: nil, RawDTCs: nil, OEMData: nil,
	}}
	if err != nil || len(dropped) != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, %v", got, dropped, err)
	}
}

// [TEL-4] [TEL-5]
func TestOfTheGoldenHostileReportTheSoundRestIsTaken(t *testing.T) {
	got, dropped, err := DecodeReport(golden(t, "report-hostile.json", nil), received)
	want := Report{
		At: received, // it claims to be from 2031
		Values: map[Field]any{
			MileageKm: 15230.4, Gear: "D", DoorTrunk: "open",
			Charging: nil, RawCharging: "plugged_in",
			DTCs: []string{"P0420"}, RawDTCs: []string{"12-34"},
		},
		Answers: []Answer{{Command: aCommand, State: Succeeded, At: now.Add(2310 * time.Millisecond)}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	var names []string
	for _, d := range dropped {
		names = append(names, d.Field)
	}
	wantNames := []string{
		"at", // years ahead
		"location.heading", "location.latitude", "location.timestamp",
		"telemetry.doors.front_left", "telemetry.ignition", "telemetry.is_locked", "telemetry.speed_kmh", "telemetry.windows",
		"diagnostics.oil_life_percent", "diagnostics.warning_lamps",
		"connectivity.firmware_version", "connectivity.rsrp_dbm", "oem_data",
		"diagnostics.dtcs", // the 7 among the codes
		"location",         // half a position
		"commands", "commands", "commands",
	}
	if !slices.Equal(names, wantNames) {
		t.Errorf("dropped %q, want %q", names, wantNames)
	}
}

func TestGoldenPresencesReadAndWriteToTheByte(t *testing.T) {
	for file, want := range map[string]Presence{
		"presence-online.json":  {Status: Online, Session: "f3a9c1d07b5e2846", At: now, Firmware: "4.2.1", Actions: append(slices.Clone(ControlActions), ReportState)},
		"presence-standby.json": {Status: Standby, Session: "f3a9c1d07b5e2846", At: now.Add(minute)},
		"presence-offline.json": {Status: Offline, Session: "f3a9c1d07b5e2846"}, // a last will bears no time
	} {
		got, err := DecodePresence(golden(t, file, EncodePresence(want)), now.Add(2*minute))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
	}
}

// golden returns a message of testdata/wire and, where the codec writes it, checks
// that it writes these very bytes.
func golden(t *testing.T, file string, written []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", "wire", file)
	if *update && written != nil {
		if err := os.WriteFile(path, written, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	message, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if written != nil && !bytes.Equal(message, written) {
		t.Errorf("%s: the codec writes\n%s\nwant\n%s", file, written, message)
	}
	return message
}
