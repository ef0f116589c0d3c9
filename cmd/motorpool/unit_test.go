package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// unitsFile creates a password file with one unit, and sets its name in the environment.
func unitsFile(t *testing.T) string {
	t.Helper()
	line, err := mosquitto.PasswordLine("other", "password")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "units.passwd")
	require.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
	t.Setenv("MOTORPOOL_UNITS_PASSWD", file)
	return file
}

// operatedMosquitto starts a Mosquitto with the unit "other", which the command line changes and
// reloads.
func operatedMosquitto(t *testing.T, cfg devstack.MosquittoConfig) *devstack.Mosquitto {
	t.Helper()
	devstack.NeedServer(t, devstack.MosquittoServer)
	cfg.Dir, cfg.Units = t.TempDir(), map[string]string{"other": "password"}
	broker, err := devstack.StartMosquitto(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = broker.Close() })
	t.Setenv("MOTORPOOL_UNITS_PASSWD", broker.UnitsPasswords())
	t.Setenv("MOTORPOOL_MOSQUITTO_PID_FILE", broker.PIDFile())
	return broker
}

// passwordOf returns the password of a unit that a command has printed.
func passwordOf(t *testing.T, printed, unit string) string {
	t.Helper()
	for line := range strings.Lines(printed) {
		if name, password, _ := strings.Cut(strings.TrimSpace(line), " "); name == unit && len(password) == 32 {
			return password
		}
	}
	t.Fatalf("the password of %s is missing in %q", unit, printed)
	return ""
}

// connect connects a unit until the test ends.
func connect(t *testing.T, broker *devstack.Mosquitto, unit, password string) (simulator.Connection, error) {
	t.Helper()
	c, err := simulator.MQTT{
		Broker: broker.UnitsURL(),
	}.Dial(t.Context(), simulator.Login{Unit: telematics.Unit(unit), Password: password}, func(simulator.Message) {})
	if err == nil {
		t.Cleanup(c.Cut)
	}
	return c, err
}

// connectSoon waits until Mosquitto has reloaded the credentials of the unit.
func connectSoon(t *testing.T, broker *devstack.Mosquitto, unit, password string) simulator.Connection {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := connect(t, broker, unit, password)
		if err == nil {
			return c
		}
		if time.Now().After(deadline) {
			require.Late(t, "unit %s cannot connect: %v", unit, err)
		}
	}
}

func awaitLost(t *testing.T, what string, c simulator.Connection) {
	t.Helper()
	select {
	case <-c.Lost():
	case <-time.After(time.Minute):
		require.Late(t, "%s: the connection is still open", what)
	}
}

func TestUnit_ConcurrentRunsLoseNothing(t *testing.T) {
	file := unitsFile(t)
	require.NoError(t, os.Chmod(file, 0o640))
	const operators, each = 8, 5
	var group sync.WaitGroup
	for n := range operators {
		group.Go(func() {
			for i := range each {
				u := addUnit{
					unitAccess{UnitsPasswd: file}, credentials{filepath.Join(t.TempDir(), "password")}, device{},
					serials{[]string{fmt.Sprintf("unit-%d-%d", n, i)}},
				}
				assert.NoError(t, u.Run(context.Background()))
			}
		})
	}
	group.Wait()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	passwords, err := mosquitto.ParsePasswords(text)
	if users := passwords.Users(); err != nil || len(users) != 1+operators*each || !slices.Contains(users, "other") {
		t.Errorf("%d users are in the file, %v", len(users), err)
	}
	if is, err := os.Stat(file); err != nil || is.Mode().Perm() != 0o640 {
		t.Errorf("the file has the mode %v, %v; want 0640", is.Mode(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v; want one file", left, err)
	}
}

func TestUnit_RefusedCommandChangesNothing(t *testing.T) {
	file := unitsFile(t)
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken")
	require.NoError(t, os.WriteFile(taken, []byte("of another"), 0o600))
	stale := filepath.Join(folder, "stale.pid")
	require.NoError(t, os.WriteFile(stale, fmt.Appendln(nil, os.Getpid()), 0o600))
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"existing unit":             {[]string{"add", "new", "other"}, exitRefused, "motorpool unit rotate other"},
		"rotate of an unknown unit": {[]string{"rotate", "other", "new"}, exitRefused, "motorpool unit add new"},
		"remove of an unknown unit": {[]string{"remove", "other", "new"}, exitRefused, "unit new has nothing to take away"},
		"invalid serial":            {[]string{"add", "a/b"}, exitUsage, "want 1 to 64 letters"},
		"wildcard":                  {[]string{"add", "+"}, exitUsage, "want 1 to 64 letters"},
		"duplicate unit":            {[]string{"add", "new", "new"}, exitUsage, "named twice"},
		"existing output file":      {[]string{"add", "new", "--password-file", taken}, exitRefused, "file exists"},
		"missing PID file": {
			[]string{"add", "new", "--mosquitto-pid-file", filepath.Join(folder, "none")}, exitFailed, "nothing was changed",
		},
		"PID of another process": {[]string{"add", "new", "--mosquitto-pid-file", stale}, exitFailed, "not mosquitto"},
		"missing password file": {
			[]string{"add", "new", "--units-passwd", filepath.Join(folder, "none")}, exitFailed, "install -m 600",
		},
	} {
		printed, _, err := runTool(t, append([]string{"unit"}, c.args...)...)
		if exitCode(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) || printed != "" {
			t.Errorf("%s: exit code %d, printed %q, %v", name, exitCode(err), printed, err)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed to %q, %v", after, err)
	}
	require.NoError(t, os.WriteFile(file, append(before, "plain:text\n"...), 0o600))
	for _, args := range [][]string{{"add", "new"}, {"list"}} {
		if _, _, err := runTool(
			t,
			append([]string{"unit"}, args...)...); err == nil || !strings.Contains(err.Error(), "line 2") ||
			strings.Contains(err.Error(), "text\"") {
			t.Errorf("%v of a file with a bad line: %v", args, err)
		}
	}
}

func TestUnit_PasswordFileIsReadableByItsOwnerOnly(t *testing.T) {
	unitsFile(t)
	file := filepath.Join(t.TempDir(), "new.password")
	tool(t, "unit", "add", "new", "--password-file", file).printsOnly("").says("SIGHUP")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	passwordOf(t, string(text), "new")
	tool(t, "unit", "list", "--output", "table").hasLine("other", "other").hasLine("new", "new")
	tool(t, "unit", "list", "--output", "json").prints(`"unit": "new"`)
	if is, err := os.Stat(file); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v; want 0600", is.Mode(), err)
	}
}

func TestUnit_RepeatedRemoveCompletesAnInterruptedOne(t *testing.T) {
	broker := operatedMosquitto(t, devstack.MosquittoConfig{})
	other, err := connect(t, broker, "other", "password")
	require.NoError(t, err)
	// The first remove is interrupted after it changed the file and before Mosquitto read it.
	t.Setenv("MOTORPOOL_MOSQUITTO_PID_FILE", "")
	tool(t, "unit", "remove", "other").says("stay open until they break")
	t.Setenv("MOTORPOOL_MOSQUITTO_PID_FILE", broker.PIDFile())
	tool(t, "unit", "remove", "other").exits(exitRefused)
	awaitLost(t, "connection of a removed unit", other)
}

func TestUnit_PasswordsOfAFailedChangeAreRemoved(t *testing.T) {
	file := unitsFile(t)
	// A file that cannot be removed makes the change fail after the passwords were created.
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(file), ".units.passwd-1.new", "x"), 0o700))
	passwords := filepath.Join(t.TempDir(), "passwords")
	tool(t, "unit", "add", "new", "--password-file", passwords).fails()
	if _, err := os.Stat(passwords); !os.IsNotExist(err) {
		t.Errorf("the file of the passwords exists: %v", err)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(file), ".units.passwd-1.new")))
	tool(t, "unit", "add", "new", "--password-file", passwords).succeeds()
}
