package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	auditlog "motorpool/store/activity"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// fromStdin makes the program read a text from its standard input.
func fromStdin(t *testing.T, text string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "stdin")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	file, err := os.Open(name)
	require.NoError(t, err)
	terminal := os.Stdin
	os.Stdin = file
	t.Cleanup(func() { os.Stdin = terminal; file.Close() })
}

func TestStdin_EndsWithAnInterrupt(t *testing.T) {
	reader, writer, err := os.Pipe() // as a terminal at which a person types nothing
	require.NoError(t, err)
	defer writer.Close()
	terminal := os.Stdin
	os.Stdin = reader
	t.Cleanup(func() { os.Stdin = terminal; reader.Close() })
	for _, args := range [][]string{
		{"import", "-"}, {"operator", "password", "anna", "--password-stdin"}, {"alerts", "rules", "1", "--set", "-"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := run(ctx, args); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v, want that it was interrupted", args, err)
		}
	}
}

const smallFleet = `{"agencies":[{"id":1,"code":"MUC","name":"Isar Mobility","tax_percent":19}],
	"vehicles":[{"id":1,"agency_id":1,"unit":"U1","powertrain":"electric","plate_number":"M 1","capabilities":["lock"]}]}`

func TestImport_PrintsEachChange(t *testing.T) {
	t.Setenv("MOTORPOOL_DATABASE_URL", storetest.NewEmptyDatabase(t))
	run := func(file string, args ...string) string {
		t.Helper()
		fromStdin(t, file)
		printed, err := output(t, append([]string{"import", "-"}, args...)...)
		require.NoError(t, err, "import of %s", file)
		return printed
	}
	fromStdin(t, smallFleet)
	tool(t, "import", "-", "--dry-run").fails("motorpool migrate")
	run(smallFleet)
	const change = `{"agencies":[{"id":1,"tax_percent":null}],"vehicles":[{"id":1,"status":"maintenance"}]}`
	const lines = "agency 1: tax 19 % → 0 %\nvehicle 1: status available → maintenance\n"
	for range 2 {
		assert.Equal(t, run(change, "--dry-run"), lines+"nothing was changed (--dry-run)\n", "a dry run prints")
	}
	assert.Equal(t, run(change), lines+"added or changed: 1 agency, 1 vehicle\n", "the import prints")
	const offer = `{"agencies":[{"id":1,"tariffs":{"van":{"per_hour":9}},"rental_rules":{"hold_minutes":20}}]}`
	if got, want := run(offer), "agency 1: rental rules none → hold_minutes 20\nagency 1: tariff van none → 9.00 EUR an hour\n"+
		"added or changed: 1 tariff, 1 set of rental rules\n"; got != want {
		t.Errorf("the import prints %q, want %q", got, want)
	}
	assert.Equal(t, run(change), "nothing to import: all of the file is on record already\n", "the import again prints")
	fromStdin(t, `{"vehicles":[{"id":1,"status":"lost"}]}`)
	if _, err := output(t, "import", "-"); exitCode(err) != exitRefused || !strings.HasPrefix(err.Error(),
		"-:\nvehicles[0].status: ") || !strings.HasSuffix(err.Error(), "nothing was changed") {
		t.Errorf("an import of an unknown status: exit code %d, %v", exitCode(err), err)
	}
	fromStdin(t, `{"vehicles":`)
	tool(t, "import", "-").exits(exitRefused)
}

// What is printed before an import is often read by head, which ends it.
func TestImport_OutlivesTheReaderOfItsOutput(t *testing.T) {
	database := storetest.NewEmptyDatabase(t)
	file := filepath.Join(t.TempDir(), "fleet.json")
	require.NoError(t, os.WriteFile(file, []byte(smallFleet), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	reader.Close()
	command := exec.CommandContext(t.Context(), self, "import", file, "--database-url", database)
	command.Stdout = writer
	var ended *exec.ExitError
	if err := command.Run(); !errors.As(err, &ended) || ended.ExitCode() != exitUnknown {
		t.Errorf("it ended with %v, want exit code %d: its output is lost", err, exitUnknown)
	}
	var vehicles int
	require.NoError(t, storetest.OpenAsOwner(t, database).Pool.Get(&vehicles, `select count(*) from vehicles`))
	assert.Equal(t, vehicles, 1, "vehicles on record")
}

// The name of the account, or of --by, is in the audit log; a dry run leaves no entry.
func TestImport_IsInTheAuditLogWithItsOperator(t *testing.T) {
	database := storetest.NewEmptyDatabase(t)
	t.Setenv("MOTORPOOL_DATABASE_URL", database)
	for _, args := range [][]string{{"--by", "eva"}, {}, {"--dry-run"}} {
		fromStdin(t, smallFleet)
		_, err := output(t, append([]string{"import", "-"}, args...)...)
		require.NoError(t, err)
	}
	entries, err := auditlog.New(storetest.OpenAsOwner(t, database)).Activities(t.Context(),
		telematics.ActivityQuery{Action: telematics.FleetImport})
	if err != nil || len(entries) != 2 || entries[1].Actor.Subject != "eva" || entries[0].Actor.Subject != account() {
		t.Errorf("entries %+v, %v; want one of eva, then one of %s", entries, err, account())
	}
}

// A file that names vehicles on record says too little of them, but their units.
func TestPasswd_TakesUnitsFromAFileOfChanges(t *testing.T) {
	fromStdin(t, `{"vehicles":[{"id":1,"unit":"U1"},{"id":2,"color":"red"}]}`)
	printed, err := output(t, "passwd", "--units", "-", "--unit-secret", "secret")
	if err != nil || strings.Count(printed, "\n") != 1 || !strings.HasPrefix(printed, "U1:") {
		t.Errorf("printed %q, %v; want a line of U1", printed, err)
	}
}
