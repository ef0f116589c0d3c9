package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/keyfile"
	"motorpool/internal/require"
	"motorpool/telematics/signing"
)

// newKeyFile creates the file of the signing keys, sets its name in the environment, and returns it
// with the id of its key.
func newKeyFile(t *testing.T) (file, id string) {
	t.Helper()
	private, err := output(t, "keys", "new")
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "signing.jwks")
	require.NoError(t, os.WriteFile(file, []byte(private), 0o600))
	t.Setenv("MOTORPOOL_SIGNING_KEYS", file)
	return file, chainOf(t, file).Active().ID
}

func chainOf(t *testing.T, file string) signing.Keychain {
	t.Helper()
	chain, err := keyfile.Read(file)
	require.NoError(t, err)
	return chain
}

func TestKeys_RotationCommandsNameTheNextStep(t *testing.T) {
	file, old := newKeyFile(t)
	added, said, err := runTool(t, "keys", "add")
	if err != nil || added == old || chainOf(t, file).Active().ID != old {
		t.Fatalf("add: %q %v", added, err)
	}
	if !inOrder(said, "keys export", "provision EVERY unit", "keys activate "+added, "60 s later", "keys retire "+old, "export again") {
		t.Errorf("add prints %s", said)
	}
	public, err := output(t, "keys", "export")
	if ring, parsed := signing.ParseKeyring([]byte(public)); err != nil || parsed != nil || len(ring) != 2 ||
		strings.Contains(public, `"d"`) {
		t.Errorf("export: %s %v %v", public, err, parsed)
	}
	tool(t, "keys", "list").hasLine(old, "active").hasLine(added, "standby")
	began := time.Now()
	printed, said, err := runTool(t, "keys", "activate", added)
	if err != nil || printed != added+" is active" || chainOf(t, file).Active().ID != added {
		t.Fatalf("activate: %q %v", printed, err)
	}
	if !inOrder(said, "WARNING", "bad_signature", "keys activate "+old, "not before", "keys retire "+old, "keys export", "forget "+old) {
		t.Errorf("activate prints %s", said)
	}
	tool(t, "keys", "activate", added).printsOnly(added + " is active already").saysOnly("")
	deactivated := chainOf(t, file)[1].Deactivated
	free := deactivated.Add(time.Minute)
	most := math.Ceil(time.Until(free).Seconds())
	_, err = output(t, "keys", "retire", old)
	least := math.Ceil(time.Until(free).Seconds())
	if err == nil || exitCode(err) != exitRefused {
		t.Fatalf("retire immediately: %v, exit code %d", err, exitCode(err))
	}
	_, wait, _ := strings.Cut(err.Error(), "it may be retired in ")
	var seconds float64
	if _, err := fmt.Sscanf(wait, "%f s, from "+free.Format(time.RFC3339)+" on", &seconds); err != nil || seconds < least ||
		seconds > most {
		t.Errorf("retire immediately: %q, want %v to %v s: %v", wait, least, most, err)
	}
	if deactivated.Before(began.Truncate(time.Second)) {
		t.Errorf("the key was active at %v, but the file has the deactivation at %v", began, deactivated)
	}
	err = keyfile.Edit(t.Context(), file, func(c signing.Keychain) (signing.Keychain, error) {
		for _, at := range []*time.Time{&c[1].Activated, &c[1].Deactivated} { // a minute passes
			*at = at.Add(-signing.RetireAfter)
		}
		return c, nil
	})
	require.NoError(t, err)
	tool(t, "keys", "retire", old).printsOnly(old + " is retired")
	if left := chainOf(t, file); len(left) != 1 || left.Active().ID != added {
		t.Errorf("the remaining keys are %v", left)
	}
}

func TestKeysRetire_RefusesTheActiveKey(t *testing.T) {
	file, old := newKeyFile(t)
	added, _, err := runTool(t, "keys", "add")
	require.NoError(t, err)
	for _, args := range [][]string{{old}, {"--force", old}} {
		tool(t, append([]string{"keys", "retire"}, args...)...).fails("activate another one first")
	}
	for _, verb := range []string{"activate", "retire"} {
		tool(t, "keys", verb, "unknown").fails(old + " (active)").fails(added + " (standby)")
	}
	_, _, err = runTool(t, "keys", "activate", added)
	require.NoError(t, err)
	if _, _, err := runTool(t, "keys", "retire", "--force", old); err != nil || len(chainOf(t, file)) != 1 {
		t.Errorf("retire --force: %v", err)
	}
}

func TestKeys_FileThatIsMissingOrReadableByAllOrAPlainJWKS(t *testing.T) {
	t.Setenv("MOTORPOOL_SIGNING_KEYS", filepath.Join(t.TempDir(), "none.jwks"))
	for _, verb := range [][]string{{"list"}, {"add"}, {"export"}, {"activate", "x"}, {"retire", "x"}} {
		tool(t, append([]string{"keys"}, verb...)...).fails("motorpool keys new >")
	}
	file, _ := newKeyFile(t)
	require.NoError(t, os.Chmod(file, 0o644))
	tool(t, "keys", "list").says("chmod 600")
	a, errA := signing.NewKey()
	b, errB := signing.NewKey()
	plain, err := signing.Keychain{{Key: a}, {Key: b}}.Encode()
	if errA != nil || errB != nil || err != nil {
		t.Fatal(errA, errB, err)
	}
	require.NoError(t, os.WriteFile(file, plain, 0o600))
	tool(t, "keys", "list").hasLine(a.ID, "active").hasLine(b.ID, "standby").hasLine(a.ID, "-")
	other := filepath.Join(t.TempDir(), "other.jwks")
	require.NoError(t, os.WriteFile(other, plain, 0o600))
	tool(t, "keys", "add", "--signing-keys", other).says("keys export --signing-keys " + other)
}

func TestAge_IsReadable(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for want, since := range map[string]time.Time{
		"-": {}, "59 days": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "1 h": now.Add(-time.Hour - time.Second),
	} {
		assert.Equal(t, age(since, now), want, "age since %v", since)
	}
}

// counting is a service that counts the units which hold keys.
func counting(t *testing.T, data map[string]string) {
	t.Helper()
	serving(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, r.URL.Path, "/api/v1/admin/units/keys", "the request")
		says(http.StatusOK, done(data[r.URL.Query().Get("key")]))(w, r)
	})
}

func TestKeysActivate_RefusedWhileUnitsMissTheKey(t *testing.T) {
	file, old := newKeyFile(t)
	added, _, err := runTool(t, "keys", "add")
	require.NoError(t, err)
	counting(t, map[string]string{
		old:   `{"holding":120,"missing":0,"unreported":4,"missing_units":[]}`,
		added: `{"holding":117,"missing":3,"unreported":4,"missing_units":["unit-7","unit-8","unit-9"]}`,
	})
	tool(t, "keys", "list").prints("HOLDING", "MISSING", "UNREPORTED", old, "120", "0", "4", added, "117", "3", "4")
	active := func(want string) {
		t.Helper()
		assert.Equal(t, chainOf(t, file).Active().ID, want, "the active key")
	}
	tool(t, "keys", "activate", added).exits(exitRefused).
		fails("3 of the 120 units", added, "unit-7, unit-8, unit-9", "nothing was changed", "--force")
	active(old)
	tool(t, "keys", "activate", "--force", added).says("WARNING: 3 of the 120", "WARNING: 4 units do not say")
	active(added)
	// Activating the old key again needs no flag: all units have it.
	tool(t, "keys", "activate", old).says("WARNING: 4 units do not say")
	active(old)
}

func TestKeysActivate_RefusedIfUnitsCannotBeCounted(t *testing.T) {
	file, old := newKeyFile(t)
	added, _, err := runTool(t, "keys", "add")
	require.NoError(t, err)
	serving(t, says(http.StatusServiceUnavailable, `{"success":false,"message":"not now","error":{"code":"service_unavailable"}}`))
	list := tool(t, "keys", "list").hasLine(added, "standby")
	list.must(strings.Count(list.said, "not counted") == 1, "one warning")
	refused := tool(t, "keys", "activate", added).exits(exitUnavailable).fails("not now", "nothing was changed", "--force")
	refused.must(chainOf(t, file).Active().ID == old, "the former key to be active")
	forced := tool(t, "keys", "activate", "--force", added).says("not counted")
	forced.must(chainOf(t, file).Active().ID == added, "the new key to be active")
	t.Setenv("MOTORPOOL_TOKEN", "")
	tool(t, "keys", "activate", old).says("not counted which units have " + old).says("MOTORPOOL_TOKEN")
}

// inOrder reports whether a text has the parts in this order.
func inOrder(text string, parts ...string) bool {
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// lineHas reports whether the line that begins with one word has another.
func lineHas(text, first, word string) bool {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == first && slices.Contains(words, word) {
			return true
		}
	}
	return false
}
