// Package systemd_test checks the unit with systemd's own tools.
package systemd_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../../deploy/systemd"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const unit = "motorpool.service"

func TestUnit_IsAcceptedBySystemd(t *testing.T) {
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), unit)
	// The program and the manual are not installed on the test machine.
	installed := strings.NewReplacer("/usr/bin/motorpool", "/bin/true").Replace(string(text))
	require.NoError(t, os.WriteFile(copied, []byte(installed), 0o600))
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
		copied).CombinedOutput(); err != nil || strings.Contains(string(out), unit+":") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// systemd computes the exposure: 0 is none, 100 the highest; a unit without hardening has 96.
func TestUnit_IsHardened(t *testing.T) {
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", unit).CombinedOutput()
	if err != nil {
		t.Errorf("the exposure is too high: %v\n%s", err, out)
	}
}

func TestUnit_StopTimeoutCoversDrainAndCommands(t *testing.T) {
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	match := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindSubmatch(text)
	if match == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	seconds, err := strconv.Atoi(string(match[1]))
	const drain = 5 * time.Second // by default
	if stop := time.Duration(seconds) * time.Second; err != nil || stop < drain+90*time.Second {
		t.Errorf("TimeoutStopSec is %v, want the drain of %v and 90 s", stop, drain)
	}
}

func TestSettings_Exist(t *testing.T) {
	help, err := exec.Command("go", "run", "motorpool/cmd/motorpool", "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	setting := regexp.MustCompile(`MOTORPOOL_\w+`)
	known := setting.FindAllString(string(help), -1)
	for _, name := range []string{unit, "motorpool.env.example"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, used := range setting.FindAllString(string(text), -1) {
			if !slices.Contains(known, used) {
				t.Errorf("%s: %s is not a setting of 'motorpool serve'", name, used)
			}
		}
	}
}

// The program accepts the example with every line enabled, and begins to serve.
func TestExample_IsAcceptedWithEveryLineEnabled(t *testing.T) {
	text, err := os.ReadFile("motorpool.env.example")
	require.NoError(t, err)
	dir := t.TempDir()
	run := func(ctx context.Context, env []string, args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, filepath.Join(dir, "motorpool"), args...)
		command.Dir, command.Env = dir, append([]string{"HOME=" + dir}, env...)
		return command
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "motorpool/cmd/motorpool").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	keys, err := run(t.Context(), nil, "keys", "new").Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "signing.jwks"), keys, 0o600)
	}
	require.NoError(t, err)
	public, err := run(t.Context(), nil, "keys", "public", "signing.jwks").Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "tokens.jwks"), public, 0o600)
	}
	require.NoError(t, err)
	var env []string
	for _, line := range regexp.MustCompile(`(?m)^#?(MOTORPOOL_\w+=.*)$`).FindAllStringSubmatch(string(text), -1) {
		setting := line[1]
		if setting == "MOTORPOOL_AGENCY_SECRETS_KEY=" {
			setting += strings.Repeat("a1", 32) // as openssl rand -hex 32 writes it
		}
		env = append(env, setting)
	}
	// Free ports, and no other machine.
	env = append(
		env, "MOTORPOOL_SIGNING_KEYS=signing.jwks", "MOTORPOOL_TOKEN_KEYS=tokens.jwks", "MOTORPOOL_HTTP=127.0.0.1:0",
		"MOTORPOOL_HEALTH=127.0.0.1:0", "MOTORPOOL_INTERNAL=127.0.0.1:0",
		"MOTORPOOL_DATABASE_URL=postgres://motorpool@127.0.0.1:1/motorpool?sslmode=disable",
		"MOTORPOOL_REDIS_URL=redis://127.0.0.1:1/0", "MOTORPOOL_MQTT_URL=tcp://127.0.0.1:1",
	)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	serving := run(ctx, env, "serve")
	log, err := serving.StderrPipe()
	if err == nil {
		err = serving.Start()
	}
	require.NoError(t, err)
	var said strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "msg=serving") || strings.Contains(lines.Text(), `"msg":"serving"`) {
			stop()
			_ = serving.Wait() // it was ended
			return
		}
	}
	t.Errorf("it does not serve: %v\n%s", serving.Wait(), &said)
}
