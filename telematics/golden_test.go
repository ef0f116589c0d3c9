package telematics

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden messages anew from what the codec says")

const goldenUnit Unit = "356938035643809"

// received is when the golden messages arrive.
var received = now.Add(3 * time.Second)

var (
	goldenLock = Claims{
		Command: aCommand, Unit: goldenUnit, Action: Lock, Lane: AccessLane, Seq: 42,
		IssuedAt: now, Expires: now.Add(10 * time.Second),
	}
	goldenAttention = Claims{
		Command: vectorID(vectorAttention), Unit: goldenUnit, Action: AttentionSignal, Attention: &Attention{Both, time.Second},
		Lane: AttentionLane, Seq: 43, IssuedAt: now, Expires: now.Add(11 * time.Second),
		Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	// Signed well, and valid for longer than a unit accepts [CMD-4].
	goldenTooLong = Claims{
		Command: vectorID(vectorTooLong), Unit: goldenUnit, Action: Unlock, Lane: AccessLane, Seq: 44,
		IssuedAt: now, Expires: now.Add(36 * time.Second),
	}
)

func TestGoldenCommandsAreSignedAndVerifiedToTheByte(t *testing.T) {
	keys, ring := goldenKeys(t)
	for _, c := range []struct {
		file   string
		key    int
		claims Claims
	}{
		{"command-lock.jws", 0, goldenLock},
		{"command-attention.jws", 1, goldenAttention},
		{"command-too-long.jws", 0, goldenTooLong},
	} {
		signed, err := keys[c.key].Sign(c.claims)
		if err != nil {
			t.Fatal(err)
		}
		message := golden(t, c.file, signed)
		if got, err := ring.Verify(message); err != nil || !reflect.DeepEqual(got, c.claims) {
			t.Errorf("%s: %+v, %v", c.file, got, err)
		}
	}
}

func TestGoldenForgeriesAreRefused(t *testing.T) {
	keys, ring := goldenKeys(t)
	// The claims of the lock, each time with its own id.
	payload := func(id byte) string {
		return strings.Replace(unbase64(t, lockParts(t)[1]), aCommand.String(), vectorID(id).String(), 1)
	}
	unsigned := func(alg string, id byte) []byte {
		h := `{"alg":"` + alg + `","kid":"fleet-1","typ":"motorpool-command+jwt"}`
		return []byte(base64.RawURLEncoding.EncodeToString([]byte(h)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload(id))))
	}
	signed := func(header string, id byte) []byte { return signedRaw(keys[0], header, payload(id)) }
	mac := hmac.New(sha256.New, ring["fleet-1"])
	mac.Write(unsigned("HS256", vectorHS256))
	for file, forged := range map[string][]byte{
		"command-alg-none.jws": append(unsigned("none", vectorAlgNone), '.'),
		"command-hs256.jws":    append(append(unsigned("HS256", vectorHS256), '.'), base64.RawURLEncoding.EncodeToString(mac.Sum(nil))...),
		// Signed well, and still no commands [CMD-1].
		"command-critical.jws":     signed(`{"alg":"EdDSA","crit":["b64"],"b64":true,"kid":"fleet-1","typ":"motorpool-command+jwt"}`, vectorCritical),
		"command-another-type.jws": signed(`{"alg":"EdDSA","kid":"fleet-1","typ":"JWT"}`, vectorAnotherType),
	} {
		if claims, err := ring.Verify(golden(t, file, forged)); !errors.Is(err, ErrBadSignature) {
			t.Errorf("%s: %+v, %v", file, claims, err)
		}
	}
}

// The test vectors of docs/protocol.md that spell the golden lock differently: what is taken must be the lock.
func TestAnotherSpellingOfTheGoldenLockIsTheLockOrNothing(t *testing.T) {
	_, ring := goldenKeys(t)
	parts := lockParts(t)
	lock := strings.Join(parts, ".")
	for name, message := range map[string]string{
		"padding": lock + "==", "a line feed": lock + "\n", "spare bits": strings.TrimSuffix(lock, "A") + "B",
		"the other alphabet": parts[0] + "." + parts[1] + "." + strings.NewReplacer("-", "+", "_", "/").Replace(parts[2]),
	} {
		if claims, err := ring.Verify([]byte(message)); err == nil && claims != goldenLock || err != nil && !errors.Is(err, ErrBadSignature) {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
	}
	for name, message := range map[string]string{
		"a fourth part": lock + ".e30", "two parts": parts[0] + "." + parts[1], "a header that is null": "bnVsbA." + parts[1] + "." + parts[2],
	} {
		if claims, err := ring.Verify([]byte(message)); !errors.Is(err, ErrBadSignature) {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
	}
}

// lockParts returns the three parts of the golden lock.
func lockParts(t *testing.T) []string {
	t.Helper()
	return strings.Split(string(golden(t, "command-lock.jws", nil)), ".")
}

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

// goldenCommands lists the files of all golden commands.
func goldenCommands(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "wire", "command-*.jws"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden commands: %v", err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

// goldenID returns the jti of a golden command, whatever key signed it.
func goldenID(t *testing.T, file string) string {
	t.Helper()
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal([]byte(unbase64(t, strings.Split(string(golden(t, file, nil)), ".")[1])), &claims); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return claims.ID
}

// goldenKeys returns the test keys of testdata, and the ring that accepts them all.
func goldenKeys(t testing.TB) ([]SigningKey, Keyring) {
	t.Helper()
	private, err := os.ReadFile(filepath.Join("testdata", "keys.jwks"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseSigningKeys(private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join("testdata", "keyring.jwks"))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := ParseKeyring(public)
	if err != nil {
		t.Fatal(err)
	}
	return keys, ring
}
