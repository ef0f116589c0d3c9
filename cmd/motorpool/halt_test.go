package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/simulator/devstack"
	"motorpool/store"
	"motorpool/telematics"
)

// recorded returns a record with the agencies 1 and 2.
func recorded(t *testing.T) (*store.Postgres, string) {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	server, err := devstack.StartPostgres(t.Context(), devstack.PostgresConfig{Dir: filepath.Join(t.TempDir(), "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Discard() })
	postgres, err := store.New(store.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = postgres.Close() })
	if _, err := postgres.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	agencies := store.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "ONE", Name: "One"}, {ID: 2, Code: "TWO", Name: "Two"}}}
	if _, err := postgres.Import(t.Context(), agencies); err != nil {
		t.Fatal(err)
	}
	return postgres, server.URL()
}

func TestResumeSaysWhatStaysHalted(t *testing.T) {
	postgres, url := recorded(t)
	halt := func(agency telematics.AgencyID, why string) {
		t.Helper()
		if done, err := postgres.Halt(t.Context(), telematics.Halt{Agency: agency, Why: why, By: "eva"}); !done || err != nil {
			t.Fatal(done, err)
		}
	}
	resume := func(args ...string) string {
		t.Helper()
		printed, err := output(t, append([]string{"resume", "--database-url", url}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return printed
	}
	halt(0, "recall")
	halt(1, "strike")
	halt(2, "theft")
	if got := resume("--agency", "1"); got != "the halt of agency 1 is lifted; that of all agencies still stops its vehicles: recall\n" {
		t.Errorf("of one, while all are halted: %q", got)
	}
	if got := resume(); got != "commands to vehicles of all agencies may leave again, within a second\nbut for those of agency 2: theft\n" {
		t.Errorf("of all, while one is halted: %q", got)
	}
	if got := resume("--agency", "2"); got != "commands to vehicles of agency 2 may leave again, within a second\n" {
		t.Errorf("of the last one: %q", got)
	}
}

// A variable that is empty or zero in an operator's script must not stop everybody.
func TestAgencyZeroIsNotEverybody(t *testing.T) {
	for _, args := range [][]string{{"halt", "--why", "strike", "--agency", "0"}, {"resume", "--agency", "0"}, {"halt", "--why", "strike", "--agency", ""}} {
		if err := run(t.Context(), append(args, "--database-url", "postgres://127.0.0.1:1/none")); err == nil || !strings.Contains(err.Error(), "--agency") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestAHaltThatIsNotWaitedForStaysInForce(t *testing.T) {
	postgres, url := recorded(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"halt", "--why", "recall", "--agency", "2", "--database-url", url}) }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if halts, err := postgres.Halts(t.Context()); err != nil || len(halts) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no halt is in force")
		}
	}
	interrupt()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "is in force and stays so, until: motorpool resume --agency 2") {
		t.Errorf("interrupted: %v", err)
	}
}
