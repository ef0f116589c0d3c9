package migrations_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/migrations"
)

// previousVersion is the commit of the release that runs while this version is rolled out: v0.7.0.
const previousVersion = "60e1dac2319b6d88cc5a31ff3392b3b3840a29c8"

// previousTests are tests of the previous version: of its claims, settlements, bulks, idempotency
// keys, reported state, unrecorded responses, and its database role.
const previousTests = "^(TestPostgresKeepsTheContractOfCommands|TestTwinsKeepTheContractOfVehicles|" +
	"TestABulkIsReadBackWithWhatBecameOfEachVehicle|TestAKeyStandsForABulkOrACommand|" +
	"TestStoreUnrecorded_WritesAnAnswerOnceWithItsHistory|TestARoleWithItsRightsCarriesACommand)$"

// The previous version's source with the migrations of this one passes its tests. This needs the
// history of the repository.
func TestPreviousVersion_WorksOnThisSchema(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "git", "cat-file", "-e", previousVersion+"^{commit}").CombinedOutput(); err != nil {
		t.Fatalf(
			"the history does not go back to %s (%v %s): get it with git fetch --unshallow, or in CI with fetch-depth: 0",
			previousVersion, err, out,
		)
	}
	source := t.TempDir()
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	require.NoError(t, err)
	archive := exec.CommandContext(ctx, "git", "-C", strings.TrimSpace(string(root)), "archive", previousVersion)
	tree, err := archive.Output()
	require.NoError(t, err)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(tree)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	added := 0
	for _, name := range files {
		text, err := fs.ReadFile(migrations.Files, name)
		require.NoError(t, err)
		file := filepath.Join(source, "store", "migrations", name)
		if before, err := os.ReadFile(file); err != nil {
			added++
		} else if !bytes.Equal(before, text) {
			t.Errorf("%s has changed since the previous version: a database that has applied it would not get the change", name)
		}
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	if added == 0 {
		t.Errorf("no migration was added since %s: set previousVersion to the one before it", previousVersion)
	}
	tests := exec.CommandContext(ctx, "go", "test", "-trimpath", "-vet=off", "-count=1", "-v", "-run", previousTests, "./store/commands")
	tests.Dir = source
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name := range strings.SplitSeq(strings.Trim(previousTests, "^()$"), "|") {
		if !strings.Contains(string(out), "\n--- PASS: "+name+" ") {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}
