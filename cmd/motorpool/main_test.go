package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics/signing"
)

// TestMain makes the test binary act as the program for tests that need it as a process: the killed
// process is the code under test, with the race detector if the tests use it.
func TestMain(m *testing.M) {
	if os.Args[0] == "motorpool" || len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	// The shell of a developer may have the variables of the README's quick start.
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "MOTORPOOL_") {
			_ = os.Unsetenv(name)
		}
	}
	code := m.Run()
	storetest.Stop()
	os.Exit(code)
}

// output returns what a command prints to standard output, and its error.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	var printed []byte
	var reading sync.WaitGroup
	reading.Go(func() { printed, err = io.ReadAll(reader) }) // meanwhile: a pipe holds 64 KB
	stdout := os.Stdout
	os.Stdout = writer
	failure := run(context.Background(), args)
	os.Stdout = stdout
	_ = writer.Close()
	reading.Wait()
	require.NoError(t, err)
	return string(printed), failure
}

func TestSettings_AllErrorsAreReportedTogether(t *testing.T) {
	t.Setenv("MOTORPOOL_DATABASE_CONNS", "many")
	err := run(
		context.Background(),
		[]string{
			"serve", "--http", "nowhere", "--budget", "soon", "--redis-url", "ftp://x", "--log-level", "loud",
			"--signing-keys", "/does/not/exist",
		},
	)
	if err == nil {
		t.Fatal("the service started with invalid settings")
	}
	for _, flag := range []string{
		"--http", "--budget", "--database-conns", "--redis-url", "--log-level", "--signing-keys", "--token-keys",
	} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("the error does not name %s:\n%v", flag, err)
		}
	}
}

func TestServe_RefusesABudgetOutOfRange(t *testing.T) {
	for _, budget := range []string{"0s", "999ms", "31s"} {
		tool(t, "serve", "--budget", budget).fails("--budget")
	}
}

func TestKeys_PublicKeysAndTokensAreConsistent(t *testing.T) {
	private, err := output(t, "keys", "new")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "private.jwks")
	require.NoError(t, os.WriteFile(file, []byte(private), 0o600))
	public, err := output(t, "keys", "public", file)
	if err != nil || strings.Contains(public, `"d"`) {
		t.Errorf("the public keys: %s %v", public, err)
	}
	if ring, err := signing.ParseKeyring([]byte(public)); err != nil || len(ring) != 1 {
		t.Errorf("the public keys are not a keyring: %v", err)
	}
	token, err := output(t, "token", "--key", file, "--role", "client", "--agency", "2", "--sub", "anna")
	if err != nil || strings.Count(token, ".") != 2 {
		t.Errorf("token: %q %v", token, err)
	}
}

func TestPasswd_DerivesAllPasswordsFromASecret(t *testing.T) {
	lines, err := output(t, "passwd", "--units", "../dev/fleet.json", "--unit-secret", "s")
	if err != nil || strings.Count(lines, ":$7$") != 12 {
		t.Errorf("password lines: %v\n%s", err, lines)
	}
	text, err := output(t, "passwd", "--units", "../dev/fleet.json", "--unit-secret", "s", "--format", "json")
	var logins map[string]login
	if err != nil || json.Unmarshal([]byte(text), &logins) != nil || len(logins) != 12 || logins["1"].Password == "" {
		t.Errorf("logins: %v\n%s", err, text)
	}
	tool(t, "passwd", "--service-password", "p").prints("motorpool:$7$")
	tool(t, "passwd").fails()
}

func TestControl_PrintsTheResponseOfTheService(t *testing.T) {
	answers := map[string]string{
		"/api/v1/admin/vehicles/42/control/lock": `{"success":true,"message":"Vehicle 42 was locked.","data":{"state":"succeeded"}}`,
		"/api/v1/admin/vehicles/42/status":       `{"success":false,"message":"There is no vehicle 42.","data":null,"request_id":"r-1"}`,
		"/api/v1/admin/vehicles/42/control/unlock": `{"success":false,"message":"No answer.","request_id":"r-2",` +
			`"error":{"retryable":false,"retry_after":10,"command_id":"c-1"}}`,
		"/api/v1/admin/vehicles/43/control/unlock": `{"success":false,"message":"Not supported.","request_id":"r-3",` +
			`"error":{"retryable":false,"retry_after":3600,"outcome":"not_executed","command_id":"c-2"}}`,
		"/api/v1/admin/vehicles/44/control/unlock": `{"success":false,"message":"It failed.","request_id":"r-4",` +
			`"error":{"retryable":false,"retry_after":10,"outcome":"failed","command_id":"c-3"}}`,
		"/api/v1/admin/commands/c-1": `{"success":true,"message":"The command.","data":{"late":true}}`,
	}
	serving(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, answers[r.URL.Path]) })
	tool(t, "lock", "42").prints("succeeded")
	tool(t, "status", "42").failsWith("There is no vehicle 42.\nrequest r-1")
	tool(t, "unlock", "42").failsWith("No answer.\nlook again in 10 s: motorpool command c-1\nrequest r-2")
	tool(t, "unlock", "43").failsWith("Not supported.\nrequest r-3")
	tool(t, "unlock", "44").failsWith("It failed.\ndetails: motorpool command c-3\nrequest r-4")
	tool(t, "command", "c-1").prints("late")
	t.Setenv("MOTORPOOL_URL", "127.0.0.1:8080")
	tool(t, "lock", "42").fails("--url")
}

func TestPasswd_RefusesFlagsOfDifferentKinds(t *testing.T) {
	t.Setenv("MOTORPOOL_SERVICE_PASSWORD", "p")
	for _, args := range [][]string{{"--units", "../dev/fleet.json", "--unit-secret", "s"}, {"--format", "json"}} {
		tool(t, append([]string{"passwd"}, args...)...).fails()
	}
}

func TestToken_IsForOneAgencyOrForAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "private.jwks")
	private, err := output(t, "keys", "new")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(private), 0o600))
	for _, args := range [][]string{{"--agency", "0"}, {"--agency=-3"}, {"--role", "client"}, {}, {"--scope", "all_agencies_read"}} {
		tool(t, append([]string{"token", "--key", file}, args...)...).fails()
	}
	token, err := output(t, "token", "--key", file, "--scope", "all_agencies")
	require.NoError(t, err)
	parsed, err := jwt.ParseInsecure([]byte(strings.TrimSpace(token)))
	require.NoError(t, err)
	var scope string
	if err := parsed.Get("scope", &scope); err != nil || scope != "all_agencies" || parsed.Has("agency_id") {
		t.Errorf("token for all agencies: scope %q, %v", scope, err)
	}
}
