package signing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/wiretest"
)

// now is the time of the tests of this package.
var now = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// aCommand has an id that is easy to recognise.
var aCommand = uuid.MustParse("0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c")

const goldenUnit telematics.Unit = "356938035643809"

var (
	goldenLock = telematics.Claims{
		Command: aCommand, Unit: goldenUnit, Action: telematics.Lock, Lane: telematics.AccessLane, Seq: 42,
		IssuedAt: now, Expires: now.Add(10 * time.Second),
	}
	goldenAttention = telematics.Claims{
		Command: vectorID(vectorAttention), Unit: goldenUnit, Action: telematics.AttentionSignal,
		Attention: &telematics.Attention{Signal: telematics.Both, Duration: time.Second},
		Lane:      telematics.AttentionLane, Seq: 43, IssuedAt: now, Expires: now.Add(11 * time.Second),
		Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	// Correctly signed, and valid for longer than a unit accepts [CMD-4].
	goldenTooLong = telematics.Claims{
		Command: vectorID(vectorTooLong), Unit: goldenUnit, Action: telematics.Unlock, Lane: telematics.AccessLane, Seq: 44,
		IssuedAt: now, Expires: now.Add(36 * time.Second),
	}
)

func TestGolden_ForgeriesAreRefused(t *testing.T) {
	keys, ring := goldenKeys(t)
	// The claims of the lock, each time with another jti.
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
		// Correctly signed, and still not commands [CMD-1].
		"command-critical.jws": signed(`{"alg":"EdDSA","crit":["b64"],"b64":true,"kid":"fleet-1","typ":"motorpool-command+jwt"}`,
			vectorCritical),
		"command-another-type.jws": signed(`{"alg":"EdDSA","kid":"fleet-1","typ":"JWT"}`, vectorAnotherType),
	} {
		if claims, err := ring.Verify(wiretest.Golden(t, file, forged)); !errors.Is(err, ErrBadSignature) {
			t.Errorf("%s: %+v, %v; want ErrBadSignature", file, claims, err)
		}
	}
}

// The test vectors of telematics/testdata/wire/README.md with other encodings of the golden lock:
// what is accepted must be the lock.
func TestVerify_OtherEncodingOfALockIsTheLockOrRefused(t *testing.T) {
	_, ring := goldenKeys(t)
	parts := lockParts(t)
	lock := strings.Join(parts, ".")
	for name, message := range map[string]string{
		"padding": lock + "==", "a line feed": lock + "\n", "spare bits": strings.TrimSuffix(lock, "A") + "B",
		"the other alphabet": parts[0] + "." + parts[1] + "." + strings.NewReplacer("-", "+", "_", "/").Replace(parts[2]),
	} {
		if claims, err := ring.Verify([]byte(message)); err == nil && claims != goldenLock ||
			err != nil && !errors.Is(err, ErrBadSignature) {
			t.Errorf("%s: %+v, %v; want the lock or ErrBadSignature", name, claims, err)
		}
	}
}

// lockParts returns the three parts of the golden lock.
func lockParts(t *testing.T) []string {
	t.Helper()
	return strings.Split(string(wiretest.Golden(t, "command-lock.jws", nil)), ".")
}

// goldenCommands lists the files of all golden commands.
func goldenCommands(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(wiretest.Path("command-*.jws"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no golden commands: %v", err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

// goldenID returns the jti of a golden command, signed with any key.
func goldenID(t *testing.T, file string) string {
	t.Helper()
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal([]byte(unbase64(t, strings.Split(string(wiretest.Golden(t, file, nil)), ".")[1])), &claims); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return claims.ID
}

// goldenKeys returns the test keys of testdata, and the keyring that accepts all of them.
func goldenKeys(t testing.TB) ([]Key, Keyring) {
	t.Helper()
	private, err := os.ReadFile(filepath.Join("..", "testdata", "keys.jwks"))
	require.NoError(t, err)
	keys, err := parseKeys(private)
	require.NoError(t, err)
	public, err := os.ReadFile(filepath.Join("..", "testdata", "keyring.jwks"))
	require.NoError(t, err)
	ring, err := ParseKeyring(public)
	require.NoError(t, err)
	return keys, ring
}
