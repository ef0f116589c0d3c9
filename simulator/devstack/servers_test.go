package devstack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"motorpool/simulator/devstack"
)

// recorder stands in for a *testing.T and records the outcome.
type recorder struct{ skipped, failed string }

func (r *recorder) Helper()                        {}
func (r *recorder) Name() string                   { return "TestRecorded" }
func (r *recorder) Skipf(format string, a ...any)  { r.skipped = fmt.Sprintf(format, a...) }
func (r *recorder) Fatalf(format string, a ...any) { r.failed = fmt.Sprintf(format, a...) }

func TestNeedServer_MissingServerSkipsTheTestAndListsIt(t *testing.T) {
	list := filepath.Join(t.TempDir(), "not-run")
	t.Setenv(devstack.RequireServers, "")
	t.Setenv(devstack.NotRunFile, list)
	var r recorder
	devstack.NeedServer(&r, "no such server")
	if !strings.Contains(r.skipped, "TestRecorded") || !strings.Contains(r.skipped, "no such server") || r.failed != "" {
		t.Errorf("outcome %+v, want it skipped with the names of test and server", r)
	}
	if text, err := os.ReadFile(list); err != nil || !strings.HasPrefix(string(text), "TestRecorded: ") {
		t.Errorf("the list of skipped tests: %q, %v", text, err)
	}
}

func TestNeedServer_MissingRequiredServerFailsTheTest(t *testing.T) {
	t.Setenv(devstack.RequireServers, "1")
	var r recorder
	devstack.NeedServer(&r, "no such server")
	if r.failed == "" || r.skipped != "" {
		t.Errorf("outcome %+v, want it failed", r)
	}
}

func TestNeedServer_AvailableServerNeitherSkipsNorFails(t *testing.T) {
	for _, server := range childServers {
		devstack.NeedServer(t, server)
		var r recorder
		devstack.NeedServer(&r, server)
		if r != (recorder{}) {
			t.Errorf("%s: outcome %+v, want none", server, r)
		}
	}
}
