package main

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/agencykeys"
)

const sealKey = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

// keyPrinted parses the output of "agency key add".
func keyPrinted(t *testing.T, printed string) (id string, secret []byte) {
	t.Helper()
	first, second, _ := strings.Cut(strings.TrimSpace(printed), "\n")
	id, okID := strings.CutPrefix(first, "AGENCY_KEY_ID=")
	text, okSecret := strings.CutPrefix(second, "AGENCY_SECRET=")
	secret, err := hex.DecodeString(text)
	if !okID || !okSecret || err != nil || len(secret) != rental.SecretSize {
		t.Fatalf("add prints %q, %v; want an id and a secret", printed, err)
	}
	return id, secret
}

func TestAgencyKey_CommandsNameTheNextStep(t *testing.T) {
	postgres, url := recorded(t)
	t.Setenv("MOTORPOOL_DATABASE_URL", url)
	t.Setenv("MOTORPOOL_AGENCY_SECRETS_KEY", sealKey)
	sealer, err := agencykeys.NewSealer(sealKey)
	require.NoError(t, err)
	state := func(id string) rental.AgencyKey {
		t.Helper()
		key, ok, err := agencykeys.New(postgres, sealer).AgencyKey(t.Context(), id)
		if err != nil || !ok {
			t.Fatalf("key %s: found %v, %v", id, ok, err)
		}
		return key
	}

	printed, said, err := runTool(t, "agency", "key", "add", "--direct", "2")
	if err != nil || !inOrder(said, "shown this once", "agency 2 (TWO)", "motorpool sign", "agency key retire") {
		t.Fatalf("add: %q %q %v", printed, said, err)
	}
	id, secret := keyPrinted(t, printed)
	if key := state(id); key.Agency != 2 || string(key.Secret) != string(secret) || !key.Valid(time.Now()) ||
		strings.Contains(said, hex.EncodeToString(secret)) {
		t.Errorf("key %+v, want it valid for agency 2, and the secret only on standard output", key)
	}
	list, err := output(t, "agency", "key", "list", "--direct", "--output", "table")
	if err != nil || !lineHas(list, id, "active") || !lineHas(list, id, "TWO") || strings.Contains(list, hex.EncodeToString(secret)) {
		t.Errorf("list: %s %v", list, err)
	}

	printed, said, err = runTool(t, "agency", "key", "retire", "--direct", id, "720h")
	if key := state(id); err != nil || !strings.HasPrefix(printed, id+" of agency 2 is good until ") ||
		!strings.Contains(said, "revoke --agency 2 "+id) ||
		key.State != rental.KeyRetiring || time.Until(key.Retires).Round(time.Minute) != 720*time.Hour {
		t.Errorf("retire: %q %q %v, %+v", printed, said, err, key)
	}
	tool(t, "agency", "key", "list", "--direct", "--output", "table").hasLine(id, "retiring")
	printed, said, err = runTool(t, "agency", "key", "revoke", "--direct", id)
	if key := state(id); err != nil || printed != id+" of agency 2 is revoked, at every instance" ||
		!strings.Contains(said, "agency key add 2") || key.State != rental.KeyRevoked {
		t.Errorf("revoke: %q %q %v, %+v", printed, said, err, key)
	}
	tool(t, "agency", "key", "retire", "--direct", id, "24h").fails("or it is revoked")

	other := strings.Repeat("0b", 32)
	tool(t, "agency", "key", "reseal", "--agency-secrets-key", other+","+sealKey).
		printsOnly("secrets sealed anew: 1").says("can be left out")
	if _, _, err := runTool(t, "agency", "key", "reseal"); err == nil || !strings.Contains(err.Error(), id) ||
		strings.Contains(err.Error(), "right database") {
		t.Errorf("reseal with a key that opens no secret: %v", err)
	}
}

func TestAgencyKey_AddRefusesASealingKeyUnlikeTheServices(t *testing.T) {
	_, url := recorded(t)
	t.Setenv("MOTORPOOL_DATABASE_URL", url)
	add := func(seals string) (id string, err error) {
		t.Helper()
		printed, _, err := runTool(t, "agency", "key", "add", "--direct", "1", "--agency-secrets-key", seals)
		if err == nil {
			id, _ = keyPrinted(t, printed)
		}
		return id, err
	}
	other := strings.Repeat("0b", 32)
	first, err := add(sealKey)
	require.NoError(t, err)
	if _, err := add(other); err == nil || !strings.Contains(err.Error(), "opens none of the 1 keys on record") {
		t.Errorf("with another sealing key: %v, want it refused", err)
	}
	second, err := add(other + "," + sealKey) // while the sealing key is being replaced
	require.NoError(t, err)
	for _, id := range []string{first, second} { // the sealing key of the installation is lost
		_, _, err := runTool(t, "agency", "key", "revoke", "--direct", id)
		require.NoError(t, err)
	}
	if _, err := add(strings.Repeat("0c", 32)); err != nil {
		t.Errorf("after the other keys were revoked: %v", err)
	}
}

func TestAgencyKey_InvalidArgumentsAreRefused(t *testing.T) {
	_, url := recorded(t)
	t.Setenv("MOTORPOOL_DATABASE_URL", url)
	for want, args := range map[string][]string{
		"there is no agency 7":        {"add", "--direct", "7", "--agency-secrets-key", sealKey},
		"make one: openssl rand":      {"add", "--direct", "1"},
		"want the key that":           {"reseal"},
		"is not 32 bytes":             {"add", "--direct", "1", "--agency-secrets-key", "hush"},
		"there is no key none":        {"revoke", "--direct", "none"},
		"there is no key none, or":    {"retire", "--direct", "none", "1h"},
		"is over; to end the key now": {"retire", "--direct", "none", "2020-01-31"},
		"to end the key now":          {"retire", "--direct", "none", "--", "-1h"},
		"no duration such as":         {"retire", "--direct", "none", "tomorrow"},
	} {
		printed, _, err := runTool(t, append([]string{"agency", "key"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v: printed %q, error %v, want %q", args, printed, err, want)
		}
	}
	tool(t, "agency", "key", "list", "--direct", "--database-url", "postgres://127.0.0.1:1/none").fails("right database")
}

func TestUntilWhen_AcceptsADurationADateOrATime(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	for text, want := range map[string]time.Time{
		"720h":                      time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC),
		"2026-04-01":                time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
		"2026-04-01T02:00:00+02:00": time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := untilWhen(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
}

func TestAgencyKey_UsesTheService(t *testing.T) {
	asked := serving(t, func(w http.ResponseWriter, r *http.Request) {
		key := `{"id":"ak_1","agency_id":2,"agency_code":"TWO","state":"active","retires_at":"2030-01-01T00:00:00Z",` +
			`"created_at":"2026-01-02T10:00:00Z","secret":"0a0b"}`
		if r.Method == http.MethodGet {
			key = "[" + key + "]"
		}
		says(http.StatusOK, done(key))(w, r)
	})
	tool(t, "agency", "key", "add", "2").printsOnly("AGENCY_KEY_ID=ak_1\nAGENCY_SECRET=0a0b").says("agency 2 (TWO)")
	tool(t, "agency", "key", "list", "--agency", "2", "--output", "table").hasLine("ak_1", "active")
	tool(t, "agency", "key", "retire", "--agency", "2", "ak_1", "2030-01-01").prints("ak_1 of agency 2 is good until ")
	tool(t, "agency", "key", "revoke", "--agency", "2", "ak_1").printsOnly("ak_1 of agency 2 is revoked, at every instance")
	assert.EqualSlices(t, *asked, []string{
		"POST agencies/2/keys", "GET agencies/2/keys", `POST agencies/2/keys/ak_1/retire {"until":"2030-01-01T00:00:00Z"}`,
		"POST agencies/2/keys/ak_1/revoke",
	}, "requests")
	for _, args := range [][]string{{"list"}, {"revoke", "ak_1"}, {"retire", "ak_1", "24h"}} {
		tool(t, append([]string{"agency", "key"}, args...)...).exits(exitUsage).fails("--agency")
	}
}
