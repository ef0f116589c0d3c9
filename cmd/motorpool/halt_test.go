package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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
	resume := func(args ...string) string {
		t.Helper()
		printed, err := output(t, append([]string{"resume", "--direct", "--database-url", url}, args...)...)
		require.NoError(t, err)
		return printed
	}
	halt(0, "recall")
	halt(1, "strike")
	halt(2, "theft")
	if got := resume("--agency", "1"); got != "the halt of agency 1 is lifted; that of all agencies still stops its vehicles: recall\n" {
		t.Errorf("resume of one agency while all are halted: %q", got)
	}
	if got := resume(); got != "commands to vehicles of all agencies can be sent again within a second; "+
		"those that were refused are not sent\nbut for those of agency 2: theft\n" {
		t.Errorf("resume of all while one agency is halted: %q", got)
	}
	if got := resume("--agency",
		"2"); got != "commands to vehicles of agency 2 can be sent again within a second; those that were refused are not sent\n" {
		t.Errorf("resume of the last halt: %q", got)
	}
}

// An empty or zero variable in a script of the operator must not stop all agencies.
func TestHalt_AgencyZeroIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"halt", "--why", "strike", "--agency", "0"}, {"resume", "--agency", "0"}, {"halt", "--why", "strike", "--agency", ""},
	} {
		if err := run(t.Context(), append(args, "--direct", "--database-url", "postgres://127.0.0.1:1/none")); err == nil ||
			!strings.Contains(err.Error(), "--agency") {
			t.Errorf("%v: error %v, want one about --agency", args, err)
		}
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

// asked is a request to a service.
type asked struct{ method, target, body string }

// haltService stores halts as the service does.
func haltService(t *testing.T, answers ...func(http.ResponseWriter, *http.Request) bool) (*[]asked, string) {
	t.Helper()
	var log []asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		log = append(log, asked{r.Method, r.RequestURI, string(body)})
		if len(answers) > 0 {
			answer := answers[0]
			answers = answers[1:]
			if answer(w, r) {
				return
			}
		}
		_, _ = io.WriteString(w, `{"success":true,"message":"Done.","data":[]}`)
	}))
	t.Cleanup(server.Close)
	return &log, server.URL
}

func TestHalt_FollowsNoRedirect(t *testing.T) {
	for _, command := range [][]string{{"halt", "--why", "recall"}, {"resume"}, {"halts"}} {
		log, url := haltService(t, func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.RequestURI, http.StatusMovedPermanently)
			return true
		})
		_, err := output(t, append(command, "--url", url, "--token", "x")...)
		if exitCode(err) != exitRefused || !strings.Contains(err.Error(), "301") || len(*log) != 1 {
			t.Errorf("%v: exit code %d, %v, after %q", command, exitCode(err), err, *log)
		}
	}
}

func TestHalt_UsesTheService(t *testing.T) {
	log, url := haltService(t)
	printed, err := output(t, "halt", "--why", "recall", "--url", url, "--token", "x")
	if err != nil || printed != "commands to vehicles of all agencies are halted; lift it with: motorpool resume\n" {
		t.Errorf("halt of all agencies: %q, %v", printed, err)
	}
	tool(t, "halt", "--why", "recall", "--agency", "2", "--url", url, "--token", "x").prints("motorpool resume --agency 2")
	tool(t, "resume", "--agency", "2", "--why", "car is back", "--url", url, "--token", "x").
		printsOnly("commands to vehicles of agency 2 can be sent again within a second; those that were refused are not sent\n")
	want := []asked{
		{
			"PUT", "/api/v1/admin/halts", `{"agency_id":null,"reason":"recall"}`,
		},
		{"PUT", "/api/v1/admin/halts", `{"agency_id":2,"reason":"recall"}`},
		{"DELETE", "/api/v1/admin/halts?agency_id=2&reason=car+is+back", ""},
		{"GET", "/api/v1/admin/halts", ""},
	}
	assert.EqualSlices(t, *log, want, "requests")
}

func TestHalt_NamesCommandsThatMayStillBeExecuted(t *testing.T) {
	_, url := haltService(t, func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, `{"success":true,"message":"Done.","data":{"effect":{"vehicles":120,"withheld":0,"in_flight":3}}}`)
		return true
	})
	tool(t, "halt", "--why", "recall", "--url", url, "--token", "x").prints("may still be executed: 3", "are halted")
}

func TestHalt_RetriesAndSuggestsDirect(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"success":false,"message":"Not available.","error":{"code":"service_unavailable","retryable":true}}`)
		return true
	}
	log, url := haltService(t, busy)
	if _, err := output(t, "halt", "--why", "recall", "--url", url, "--token", "x"); err != nil || len(*log) != 2 {
		t.Errorf("error %v after the requests %q, want one retry", err, *log)
	}
	tool(t, "halts", "--url", "http://127.0.0.1:1", "--token", "x").exits(exitUnavailable).fails("--direct")
}

func TestResume_RetryAfterALostResponseSucceeds(t *testing.T) {
	lost := func(w http.ResponseWriter, _ *http.Request) bool {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = connection.Close()
		}
		return true
	}
	none := func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"success":false,"message":"There is no halt.","error":{"code":"halt_not_found"}}`)
		return true
	}
	_, url := haltService(t, lost, none)
	tool(t, "resume", "--url", url, "--token", "x").prints("can be sent again")
	_, url = haltService(t, none)
	tool(t, "resume", "--url", url, "--token", "x").exits(exitRefused).fails("there is no halt of all agencies")
}

func TestHalts_AreListed(t *testing.T) {
	_, url := haltService(t, func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(
			w,
			`{"success":true,"message":"1 halt.","data":[{"agency_id":null,"reason":"recall","by":"eva","since":"2026-01-02T10:00:00Z",`+
				`"effect":{"vehicles":120,"withheld":0,"in_flight":3}}]}`,
		)
		return true
	})
	printed, err := output(t, "halts", "--output", "table", "--url", url, "--token", "x")
	if err != nil ||
		!inOrder(
			printed, "AGENCY", "SINCE", "BY", "VEHICLES", "IN FLIGHT", "REASON", "-", "2026-01-02T10:00:00Z", "eva",
			"120", "3", "recall",
		) {
		t.Errorf("printed %q, %v", printed, err)
	}
}
