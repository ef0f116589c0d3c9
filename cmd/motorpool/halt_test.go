package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/commands"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// recorded returns a database with the agencies 1 and 2.
func recorded(t *testing.T) (*pg.DB, string) {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	address := storetest.NewDatabase(t)
	postgres, err := pg.New(pg.Config{URL: address})
	require.NoError(t, err)
	t.Cleanup(func() { _ = postgres.Close() })
	agencies := vehicles.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "ONE", Name: "One"}, {ID: 2, Code: "TWO", Name: "Two"}}}
	_, err = vehicles.New(postgres).Import(t.Context(), agencies)
	require.NoError(t, err)
	return postgres, address
}

func TestResume_NamesWhatStaysHalted(t *testing.T) {
	postgres, url := recorded(t)
	halt := func(agency telematics.AgencyID, why string) {
		t.Helper()
		if _, done, err := (commands.HaltStore{DB: postgres}).Halt(t.Context(), telematics.Halt{Agency: agency, Why: why},
			telematics.OperatorAt("eva")); !done || err != nil {
			t.Fatal(done, err)
		}
	}
	resume := func(args ...string) ran {
		t.Helper()
		return tool(t, append([]string{"resume", "--direct", "--database-url", url}, args...)...)
	}
	halt(0, "recall")
	halt(1, "strike")
	halt(2, "theft")
	const again = " can be sent again within a second; those that were refused are not sent\n"
	resume("--agency", "1").printsOnly("the halt of agency 1 is lifted; that of all agencies still stops its vehicles: recall")
	resume().printsOnly("commands to vehicles of all agencies" + again + "but for those of agency 2: theft")
	resume("--agency", "2").printsOnly("commands to vehicles of agency 2" + again)
}

// An empty or zero variable in a script of the operator must not stop all agencies.
func TestHalt_AgencyZeroIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"halt", "--why", "strike", "--agency", "0"}, {"resume", "--agency", "0"}, {"halt", "--why", "strike", "--agency", ""},
	} {
		tool(t, append(args, "--direct", "--database-url", "postgres://127.0.0.1:1/none")...).fails("--agency")
	}
}

func TestHalt_StaysInForceWhenTheWaitIsInterrupted(t *testing.T) {
	postgres, url := recorded(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"halt", "--direct", "--why", "recall", "--agency", "2", "--database-url", url})
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if halts, err := (commands.HaltStore{DB: postgres}).Halts(t.Context()); err != nil || len(halts) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no halt is in force")
		}
	}
	interrupt()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "stays in force until: motorpool resume --agency 2") {
		t.Errorf("interrupted halt: %v", err)
	}
}

// haltService stores halts as the service does; its first answers are others.
func haltService(t *testing.T, answers ...http.HandlerFunc) *[]string {
	t.Helper()
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		answer := says(http.StatusOK, done(`[]`))
		if len(answers) > 0 {
			answer, answers = answers[0], answers[1:]
		}
		answer(w, r)
	})
}

func TestHalt_FollowsNoRedirect(t *testing.T) {
	for _, command := range [][]string{{"halt", "--why", "recall"}, {"resume"}, {"halts"}} {
		asked := haltService(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.RequestURI, http.StatusMovedPermanently)
		})
		tool(t, command...).exits(exitRefused).fails("301").must(len(*asked) == 1, "one request: %q", *asked)
	}
}

func TestHalt_UsesTheService(t *testing.T) {
	asked := haltService(t)
	tool(t, "halt", "--why", "recall").printsOnly("commands to vehicles of all agencies are halted; lift it with: motorpool resume")
	tool(t, "halt", "--why", "recall", "--agency", "2").prints("motorpool resume --agency 2")
	tool(t, "resume", "--agency", "2", "--why", "car is back").
		printsOnly("commands to vehicles of agency 2 can be sent again within a second; those that were refused are not sent\n")
	assert.EqualSlices(t, *asked, []string{
		`PUT halts {"agency_id":null,"reason":"recall"}`, `PUT halts {"agency_id":2,"reason":"recall"}`,
		"DELETE halts?agency_id=2&reason=car+is+back", "GET halts",
	}, "requests")
}

func TestHalt_NamesCommandsThatMayStillBeExecuted(t *testing.T) {
	haltService(t, says(http.StatusOK, done(`{"effect":{"vehicles":120,"withheld":0,"in_flight":3}}`)))
	tool(t, "halt", "--why", "recall").prints("may still be executed: 3", "are halted")
}

func TestHalt_RetriesAndSuggestsDirect(t *testing.T) {
	busy := `{"success":false,"message":"Not available.","error":{"code":"service_unavailable","retryable":true}}`
	asked := haltService(t, says(http.StatusServiceUnavailable, busy))
	tool(t, "halt", "--why", "recall").succeeds().must(len(*asked) == 2, "one retry: %q", *asked)
	tool(t, "halts", "--url", "http://127.0.0.1:1").exits(exitUnavailable).fails("--direct")
}

func TestResume_RetryAfterALostResponseSucceeds(t *testing.T) {
	lost := func(w http.ResponseWriter, _ *http.Request) {
		if connection, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = connection.Close()
		}
	}
	none := says(http.StatusNotFound, `{"success":false,"message":"There is no halt.","error":{"code":"halt_not_found"}}`)
	haltService(t, lost, none)
	tool(t, "resume").prints("can be sent again")
	haltService(t, none)
	tool(t, "resume").exits(exitRefused).fails("there is no halt of all agencies")
}

func TestHalts_AreListed(t *testing.T) {
	haltService(t, says(http.StatusOK, done(`[{"agency_id":null,"reason":"recall","by":"eva","since":"2026-01-02T10:00:00Z",`+
		`"effect":{"vehicles":120,"withheld":0,"in_flight":3}}]`)))
	tool(t, "halts", "--output", "table").prints(
		"AGENCY", "SINCE", "BY", "VEHICLES", "IN FLIGHT", "REASON", "-", "2026-01-02T10:00:00Z", "eva", "120", "3", "recall",
	)
}
