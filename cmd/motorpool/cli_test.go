package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// respondingWith returns the URL of a service that always returns the same response.
func respondingWith(t *testing.T, status int, answer string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestExitCode_ByResponse(t *testing.T) {
	t.Setenv("MOTORPOOL_TOKEN", "secret")
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
			t.Setenv("MOTORPOOL_URL", respondingWith(t, c.status, c.answer))
			if _, err := output(t, c.args...); exitCode(err) != c.want {
				t.Errorf("%v: exit code %d, want %d: %v", c.args, exitCode(err), c.want, err)
			}
		})
	}
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
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	t.Setenv("MOTORPOOL_URL", respondingWith(t, 200, `{"success":true,"message":"Done.","data":{}}`))
	for _, action := range telematics.ControlActions {
		args := []string{string(action), "42"}
		if action == telematics.AttentionSignal {
			args = append(args, "--signal", "horn")
		}
		tool(t, args...).succeeds()
	}
}

func TestPlate_SelectsOneVehicleByItsFullPlate(t *testing.T) {
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
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
		_, _ = io.WriteString(w, `{"success":true,"message":"Done.","data":`+data+`}`)
	}))
	defer service.Close()
	t.Setenv("MOTORPOOL_URL", service.URL)
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	for _, plate := range []string{"M-IM 2101", "m-im 2101"} {
		asked = nil
		if _, err := output(t, "lock", plate); err != nil || asked[len(asked)-1] != "POST /api/v1/admin/vehicles/1/control/lock" {
			t.Errorf("%s: %q %v", plate, asked, err)
		}
	}
	if _, err := output(t, "lock", "B 1"); err != nil || asked[len(asked)-1] != "POST /api/v1/admin/vehicles/3/control/lock" {
		t.Errorf("a plate of the second page: %q %v", asked, err)
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
		asked = nil
		_, err := output(t, "lock", plate)
		if exitCode(err) != want.code || !strings.Contains(err.Error(), want.says) ||
			slices.ContainsFunc(asked, func(a string) bool { return strings.HasPrefix(a, "POST") }) {
			t.Errorf("plate %q: exit code %d, %v after the requests %q", plate, exitCode(err), err, asked)
		}
	}
}

func TestOutput_TableOrJSON(t *testing.T) {
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	t.Setenv(
		"MOTORPOOL_URL",
		respondingWith(t, 200, `{"success":true,"message":"1 vehicle.","data":[{"id":42,"plate_number":"M-\u001b[2JX 1","agency_id":1,
		"status":"available","connectivity":{"status":"online","last_seen":null},
		"telemetry":{"is_locked":true}}],"meta":{"next_cursor":"abc"}}`),
	)
	printed, said, err := runTool(t, "vehicles", "--output", "table")
	if err != nil || !inOrder(printed, "ID", "PLATE", "CONNECTIVITY", "LOCKED", "\n42", "M- [2JX 1", "available", "online", "-", "true") ||
		!strings.Contains(said, "--cursor abc") {
		t.Errorf("table %q, then %q, %v", printed, said, err)
	}
	// The output is not a terminal.
	if printed, err := output(t, "vehicles"); err != nil || !strings.HasPrefix(printed, "[\n") {
		t.Errorf("printed %q, %v; want JSON", printed, err)
	}
	t.Setenv(
		"MOTORPOOL_URL",
		respondingWith(
			t, 200,
			`{"success":true,"message":"The status.","data":{"vehicle_id":42,"telemetry":{"mileage_km":1234567.5,"gear":null,`+
				`"doors":{"trunk":"closed"}},"diagnostics":{"dtcs":["P0300","P0171"]}}}`,
		),
	)
	if printed, err := output(t, "status", "42", "--output", "table"); err != nil ||
		printed != "diagnostics.dtcs       P0300, P0171\ntelemetry.doors.trunk  closed\ntelemetry.mileage_km   1234567.5\n"+
			"vehicle_id             42\n" {
		t.Errorf("printed %q, %v; want the fields in order", printed, err)
	}
	tool(t, "status", "42", "--output", "xml").exits(exitUsage)
}

func TestLists_FlagsAreQueryParameters(t *testing.T) {
	var asked string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		_, _ = io.WriteString(w, `{"success":true,"message":"None.","data":[]}`)
	}))
	defer service.Close()
	t.Setenv("MOTORPOOL_URL", service.URL)
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	for want, args := range map[string][]string{
		"vehicles?connectivity=offline&limit=50&q=Golf": {"vehicles", "Golf", "--connectivity", "offline"},
		"bookings?limit=50&status=active&vehicle_id=42": {"bookings", "--vehicle", "42", "--status", "active"},
		"alerts?limit=50&severity=critical&state=open":  {"alerts", "--severity", "critical"},
		"alerts?agency_id=1&limit=50&rule=lamp&vehicle_id=42": {
			"alerts", "list", "--state", "any", "--vehicle", "42", "--rule", "lamp", "--agency", "1",
		},
		"activity?action=command.unlock&actor=eva&limit=5&outcome=failed": {
			"activity", "--limit", "5", "--actor", "eva", "--action", "command.unlock", "--outcome", "failed",
		},
	} {
		if _, err := output(t, args...); err != nil || asked != "/api/v1/admin/"+want {
			t.Errorf("%v requested %s, %v", args, asked, err)
		}
	}
}

func TestAlerts_AreAcknowledgedAndTheirRulesSet(t *testing.T) {
	var asked string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + strings.TrimPrefix(r.RequestURI, "/api/v1/admin/") + " " + string(body)
		_, _ = io.WriteString(w, `{"success":true,"message":"Done.","data":{"rules":[{"rule":"lamp","enabled":false,"for_s":60,"levels":[
			{"severity":"info","limit":null}]}]}}`)
	}))
	defer service.Close()
	t.Setenv("MOTORPOOL_URL", service.URL)
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	rules := `{"rules":[{"rule":"lamp","enabled":false}]}`
	fromStdin(t, rules)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"alerts", "acknowledge", "a/b"}, "POST alerts/a%2Fb/acknowledge {}"},
		{[]string{"alerts", "acknowledge", "a", "--note", "on my way"}, `POST alerts/a/acknowledge {"note":"on my way"}`},
		{[]string{"alerts", "rules", "1"}, "GET agencies/1/alert-rules "},
		{[]string{"alerts", "rules", "1", "--set", "-"}, "PUT agencies/1/alert-rules " + rules},
	} {
		if _, err := output(t, c.args...); err != nil || asked != c.want {
			t.Errorf("%v requested %s, want %s; %v", c.args, asked, c.want, err)
		}
	}
	tool(t, "alerts", "rules", "1", "--output", "table").prints("lamp  false    60")
	for _, file := range []string{"/none", os.Args[0]} {
		tool(t, "alerts", "rules", "1", "--set", file).exits(exitUsage)
	}
}

func TestBulk_ExitsByTheWorstOutcome(t *testing.T) {
	t.Setenv("MOTORPOOL_TOKEN", "secret")
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
		calls := 0
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			summary := c.summary
			if r.Method == http.MethodPost && !c.async {
				summary = `{"open":2}`
			}
			_, _ = io.WriteString(w, `{"success":true,"message":"2 vehicles.","data":{"id":"b-1","summary":`+summary+`,"items":[]}}`)
		}))
		args := []string{"bulk", "lock", "1", "2", "--url", service.URL}
		if c.async {
			args = append(args, "--async")
		}
		_, err := output(t, args...)
		if service.Close(); exitCode(err) != c.want || calls < 2 && !c.async {
			t.Errorf("%s: exit code %d after %d requests: %v", name, exitCode(err), calls, err)
		}
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

// program builds the program and returns its path.
func program(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "motorpool")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

func TestProgram_VersionHelpCompletionAndExitCode(t *testing.T) {
	binary := program(t)
	run := func(args ...string) (string, int) {
		t.Helper()
		out, err := exec.Command(binary, args...).CombinedOutput()
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
