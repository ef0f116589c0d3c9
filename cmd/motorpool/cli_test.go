package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

func TestExitCode_ByResponse(t *testing.T) {
	failing := func(code, outcome string) string {
		return fmt.Sprintf(`{"success":false,"message":"No.","error":{"code":%q,"outcome":%q}}`, code, outcome)
	}
	for name, c := range map[string]struct {
		status int
		answer string
		args   []string
		want   int
	}{
		"done":                     {200, `{"success":true,"message":"Done.","data":{}}`, []string{"lock", "42"}, 0},
		"accepted":                 {202, `{"success":true,"message":"Sent.","data":{}}`, []string{"lock", "42", "--async"}, 0},
		"vehicle offline":          {503, failing("vehicle_offline", "not_executed"), []string{"lock", "42"}, 3},
		"halted":                   {503, failing("commands_halted", "not_executed"), []string{"lock", "42"}, 3},
		"not supported":            {409, failing("command_not_supported", "not_executed"), []string{"lock", "42"}, 3},
		"rejected by the unit":     {502, failing("command_rejected", "not_executed"), []string{"lock", "42"}, 3},
		"forbidden":                {403, failing("forbidden", ""), []string{"lock", "42"}, 3},
		"unknown vehicle":          {404, failing("vehicle_not_found", ""), []string{"status", "42"}, 3},
		"too many requests":        {429, failing("rate_limited", ""), []string{"lock", "42"}, 3},
		"failed":                   {502, failing("command_failed", "failed"), []string{"lock", "42"}, 4},
		"vehicle does not answer":  {504, failing("command_timeout", "unknown"), []string{"lock", "42"}, 5},
		"internal error":           {500, failing("internal", ""), []string{"lock", "42"}, 5},
		"internal error of a read": {500, failing("internal", ""), []string{"status", "42"}, 6},
		"no MQTT":                  {503, failing("telematics_unavailable", "not_executed"), []string{"lock", "42"}, 6},
		"no Postgres":              {503, failing("service_unavailable", ""), []string{"vehicles"}, 6},
		"502 of a proxy":           {502, `<html>`, []string{"lock", "42"}, 5},
		"503 of a proxy":           {503, `<html>`, []string{"lock", "42"}, 6},
		"404 of a proxy":           {404, `<html>`, []string{"lock", "42"}, 3},
		"unknown command":          {200, ``, []string{"lokc", "42"}, 2},
		"unknown flag":             {200, ``, []string{"lock", "--now", "42"}, 2},
		"flag out of range":        {200, ``, []string{"lock", "--wait", "31", "42"}, 2},
		"flag of zero":             {200, ``, []string{"lock", "--wait", "0", "42"}, 2},
		"flag without a number":    {200, ``, []string{"lock", "--wait", "x", "42"}, 2},
		"no vehicle":               {200, ``, []string{"lock"}, 2},
		"token with a line end":    {200, ``, []string{"lock", "42", "--token", "x\r"}, 2},
		"key with a line end":      {200, ``, []string{"lock", "42", "--idempotency-key", "x\n"}, 2},
		"period ahead":             {200, ``, []string{"activity", "--since=-2h"}, 2},
		"empty key":                {200, ``, []string{"lock", "42", "--idempotency-key", ""}, 2},
		"empty key of a bulk":      {200, ``, []string{"bulk", "lock", "42", "--idempotency-key="}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, says(c.status, c.answer))
			tool(t, c.args...).exits(c.want)
		})
	}
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	t.Run("no service", func(t *testing.T) {
		t.Setenv("MOTORPOOL_URL", "http://127.0.0.1:1")
		tool(t, "lock", "42").exits(exitUnavailable)
	})
	t.Run("lost response", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = connection.Read(make([]byte, 1))
				_ = connection.Close()
			}
		}()
		t.Setenv("MOTORPOOL_URL", "http://"+listener.Addr().String())
		tool(t, "lock", "42").exits(exitUnknown)
		tool(t, "status", "42").exits(exitUnavailable)
	})
	t.Run("no token", func(t *testing.T) {
		t.Setenv("MOTORPOOL_TOKEN", "")
		tool(t, "lock", "42").exits(exitUsage).fails("MOTORPOOL_TOKEN")
	})
}

func TestCLI_EachControlActionIsACommand(t *testing.T) {
	serving(t, says(http.StatusOK, done(`{}`)))
	for _, action := range telematics.ControlActions {
		args := []string{string(action), "42"}
		if action == telematics.AttentionSignal {
			args = append(args, "--signal", "horn")
		}
		tool(t, args...).succeeds()
	}
}

func TestPlate_SelectsOneVehicleByItsFullPlate(t *testing.T) {
	asked := serving(t, func(w http.ResponseWriter, r *http.Request) {
		data := `{}`
		switch q := r.URL.Query(); q.Get("q") + q.Get("cursor") {
		case "B 1", "B 17": // more than a page contain the text
			data = `[{"id":8,"plate_number":"B 18"}],"meta":{"next_cursor":"7"}`
			if q.Has("cursor") {
				data = `[{"id":3,"plate_number":"B 1"}]`
			}
		case "A 1", "A 17":
			data = `[{"id":8,"plate_number":"A 1"}],"meta":{"next_cursor":"7"}`
			if q.Has("cursor") {
				data = `[{"id":3,"plate_number":"A 1"}]`
			}
		case "M-IM 2101", "m-im 2101":
			data = `[{"id":7,"plate_number":"M-IM 2101E"},{"id":1,"plate_number":"M-IM 2101"}]`
		case "M-IM":
			data = `[{"id":7,"plate_number":"M-IM 2101E"},{"id":1,"plate_number":"M-IM 2101"}]`
		case "B-XX 1":
			data = `[{"id":8,"plate_number":"B-XX 1"},{"id":9,"plate_number":"B-XX 1"}]`
		case "none", "0042", "+42":
			data = `[]`
		}
		says(http.StatusOK, done(data))(w, r)
	})
	// The last one is of the second page.
	for plate, vehicle := range map[string]int{"M-IM 2101": 1, "m-im 2101": 1, "B 1": 3} {
		tool(t, "lock", plate).succeeds()
		assert.Equal(t, (*asked)[len(*asked)-1], fmt.Sprintf("POST vehicles/%d/control/lock", vehicle), "%s: the last request", plate)
	}
	for plate, want := range map[string]struct {
		code int
		says string
	}{
		"M-IM":   {exitUsage, "similar: 7 (M-IM 2101E), 1 (M-IM 2101)"},
		"B-XX 1": {exitUsage, "8 (B-XX 1), 9 (B-XX 1)"},
		"A 1":    {exitUsage, "8 (A 1), 3 (A 1)"},
		"none":   {exitRefused, "there is no vehicle"},
		" ":      {exitUsage, "number or the plate"},
		"0042":   {exitRefused, "there is no vehicle"},
		"+42":    {exitRefused, "there is no vehicle"},
	} {
		*asked = nil
		tool(t, "lock", plate).exits(want.code).fails(want.says).
			must(!slices.ContainsFunc(*asked, func(a string) bool { return strings.HasPrefix(a, "POST") }), "no command: %q", *asked)
	}
}

func TestOutput_TableOrJSON(t *testing.T) {
	serving(t, says(http.StatusOK, `{"success":true,"message":"1 vehicle.","data":[{"id":42,"plate_number":"M-\u001b[2JX 1","agency_id":1,
		"status":"available","connectivity":{"status":"online","last_seen":null},
		"telemetry":{"is_locked":true}}],"meta":{"next_cursor":"abc"}}`))
	tool(t, "vehicles", "--output", "table").
		prints("ID", "PLATE", "CONNECTIVITY", "LOCKED", "\n42", "M- [2JX 1", "available", "online", "-", "true").says("--cursor abc")
	listed := tool(t, "vehicles") // the output is not a terminal
	listed.must(strings.HasPrefix(listed.printed, "[\n"), "JSON")
	serving(t, says(http.StatusOK, done(`{"vehicle_id":42,"telemetry":{"mileage_km":1234567.5,"gear":null,"doors":{"trunk":"closed"}},`+
		`"diagnostics":{"dtcs":["P0300","P0171"]}}`)))
	tool(t, "status", "42", "--output", "table").printsOnly("diagnostics.dtcs       P0300, P0171\ntelemetry.doors.trunk  closed\n" +
		"telemetry.mileage_km   1234567.5\nvehicle_id             42")
	tool(t, "status", "42", "--output", "xml").exits(exitUsage)
}

func TestLists_FlagsAreQueryParameters(t *testing.T) {
	asked := serving(t, says(http.StatusOK, done(`[]`)))
	for want, args := range map[string][]string{
		"vehicles?connectivity=offline&limit=50&q=Golf": {"vehicles", "Golf", "--connectivity", "offline"},
		"bookings?limit=50&status=active&vehicle_id=42": {"bookings", "--vehicle", "42", "--status", "active"},
		"bookings?from=2026-11-01T00%3A00%3A00Z&limit=50&to=2026-11-02T08%3A00%3A00%2B01%3A00": {
			"bookings", "--from", "2026-11-01", "--to", "2026-11-02T08:00:00+01:00",
		},
		"alerts?limit=50&severity=critical&state=open": {"alerts", "--severity", "critical"},
		"alerts?agency_id=1&limit=50&rule=lamp&vehicle_id=42": {
			"alerts", "list", "--state", "any", "--vehicle", "42", "--rule", "lamp", "--agency", "1",
		},
		"activity?action=command.unlock&actor=eva&limit=5&outcome=failed": {
			"activity", "--limit", "5", "--actor", "eva", "--action", "command.unlock", "--outcome", "failed",
		},
		"units/unknown?limit=7": {"units", "unknown", "--limit", "7"},
	} {
		*asked = nil
		tool(t, args...).succeeds()
		assert.EqualSlices(t, *asked, []string{"GET " + want}, "requests of %v", args)
	}
	serving(t, says(http.StatusOK, done(`[{"unit":"unit-x"}]`)))
	tool(t, "units", "unknown", "--output", "table").hasLine("UNIT", "MESSAGES").hasLine("unit-x", "-")
}

func TestAlerts_AreAcknowledgedAndTheirRulesSet(t *testing.T) {
	asked := serving(t, says(http.StatusOK, done(`{"rules":[{"rule":"lamp","enabled":false,"for_s":60,"levels":[
		{"severity":"info","limit":null}]}]}`)))
	rules := `{"rules":[{"rule":"lamp","enabled":false}]}`
	fromStdin(t, rules)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"acknowledge", "a/b"}, "POST alerts/a%2Fb/acknowledge {}"},
		{[]string{"acknowledge", "a", "--note", "on my way"}, `POST alerts/a/acknowledge {"note":"on my way"}`},
		{[]string{"rules", "1"}, "GET agencies/1/alert-rules"},
		{[]string{"rules", "1", "--set", "-"}, "PUT agencies/1/alert-rules " + rules},
	} {
		*asked = nil
		tool(t, append([]string{"alerts"}, c.args...)...).succeeds()
		assert.EqualSlices(t, *asked, []string{c.want}, "requests of %v", c.args)
	}
	tool(t, "alerts", "rules", "1", "--output", "table").prints("lamp  false    60")
	for _, file := range []string{"/none", os.Args[0]} {
		tool(t, "alerts", "rules", "1", "--set", file).exits(exitUsage)
	}
}

func TestBulk_ExitsByTheWorstOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		summary string
		async   bool
		want    int
	}{
		"all executed":     {`{"open":0}`, false, 0},
		"only sent":        {`{"open":2}`, true, 0},
		"one not executed": {`{"not_executed":1}`, false, 3},
		"one failed":       {`{"not_executed":1,"failed":1}`, false, 4},
		"one is unknown":   {`{"not_executed":1,"failed":1,"unknown":1}`, false, 5},
	} {
		asked := serving(t, func(w http.ResponseWriter, r *http.Request) {
			summary := c.summary
			if r.Method == http.MethodPost && !c.async {
				summary = `{"open":2}`
			}
			says(http.StatusOK, done(`{"id":"b-1","summary":`+summary+`,"items":[]}`))(w, r)
		})
		tool(t, "bulk", "lock", "1", "2", fmt.Sprintf("--async=%t", c.async)).exits(c.want).
			must(len(*asked) > 1 || c.async, "%s: another look: %q", name, *asked)
	}
}

// Dangerous settings must be given on the command line, not in a variable that an operator forgot.
func TestFlags_DangerousOnesAreNotReadFromTheEnvironment(t *testing.T) {
	dangerous := []string{
		"force", "direct", "why", "by", "agency", "scope", "async", "idempotency-key", "refresh", "vehicle", "signal",
		"duration-ms",
	}
	found := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		for i := range of.NumField() {
			field := of.Field(i)
			if field.Type.Kind() == reflect.Struct {
				walk(field.Type)
				continue
			}
			name := field.Tag.Get("name")
			if name == "" {
				name = strings.ToLower(field.Name)
			}
			if _, argument := field.Tag.Lookup("arg"); !argument && slices.Contains(dangerous, name) {
				found[name] = true
				if field.Tag.Get("env") != "-" {
					t.Errorf("%s.%s is read from the environment", of.Name(), field.Name)
				}
			}
		}
	}
	walk(reflect.TypeFor[commandLine]())
	if len(found) != len(dangerous) {
		t.Errorf("found the flags %v, want %v", found, dangerous)
	}
}

func TestProgram_VersionHelpCompletionAndExitCode(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	run := func(args ...string) (string, int) {
		t.Helper()
		program := exec.Command(self)
		program.Args = append([]string{"motorpool"}, args...)
		out, err := program.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		if ended != nil {
			return string(out), ended.ExitCode()
		}
		return string(out), 0
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--version"}, 0, "motorpool dev\n"},
		{[]string{"version"}, 0, "motorpool dev\n"},
		{[]string{"help"}, 0, "Usage: motorpool <command>"},
		{[]string{"help", "agency", "key", "add"}, 0, "Usage: motorpool agency key add <agency>"},
		{[]string{"help", "nothing"}, 2, "unexpected argument nothing"},
		{[]string{}, 0, "Usage: motorpool <command>"},
		{[]string{"halt"}, 2, "--why"},
		{[]string{"fly"}, 2, "motorpool: unexpected argument fly\nmotorpool: see: motorpool help\n"},
		{[]string{"agency", "key", "add"}, 2, "see: motorpool help agency key add\n"},
		{[]string{"lock", "42", "--token", "x", "--url", "http://127.0.0.1:1"}, 6, "is the service running there?"},
	} {
		if out, code := run(c.args...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, code, out)
		}
	}
	script, code := run("completion", "bash")
	if code != 0 {
		t.Fatal(script)
	}
	file := filepath.Join(t.TempDir(), "completion.bash")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	for line, want := range map[string]string{
		"motorpool hal":             "halt halts",
		"motorpool agency key re":   "retire revoke reseal",
		"motorpool halt --wh":       "--why",
		"motorpool unlock 42 --asy": "--async",
		"motorpool keys act":        "activate",
	} {
		words := strings.Fields(line)
		test := fmt.Sprintf("source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _motorpool; echo ${COMPREPLY[@]}", file, line, len(words)-1)
		out, err := exec.Command("bash", "-c", test).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q is completed to %q, want %q: %v", line, strings.TrimSpace(string(out)), want, err)
		}
	}
	for _, shell := range []string{"zsh", "fish"} {
		if script, code := run("completion", shell); code != 0 || !strings.Contains(script, "halts") {
			t.Errorf("completion %s: exit code %d: %s", shell, code, script)
		}
	}
}
