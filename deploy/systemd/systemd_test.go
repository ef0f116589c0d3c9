// Package systemd_test checks the unit with systemd's own tools.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const unit = "motorpool.service"

func TestUnit_IsAcceptedBySystemd(t *testing.T) {
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), unit)
	// The program and the manual are not installed on the test machine.
	installed := strings.NewReplacer("/usr/bin/motorpool", "/bin/true").Replace(string(text))
	if err := os.WriteFile(copied, []byte(installed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copied).CombinedOutput(); err != nil || strings.Contains(string(out), unit+":") {
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
	if err != nil {
		t.Fatal(err)
	}
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

func TestSettingsExist(t *testing.T) {
	help, err := exec.Command("go", "run", "motorpool/cmd/motorpool", "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	setting := regexp.MustCompile(`MOTORPOOL_\w+`)
	known := setting.FindAllString(string(help), -1)
	for _, name := range []string{unit, "motorpool.env.example"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, used := range setting.FindAllString(string(text), -1) {
			if !slices.Contains(known, used) {
				t.Errorf("%s: %s is not a setting of 'motorpool serve'", name, used)
			}
		}
	}
}
