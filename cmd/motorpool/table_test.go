package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// evil is what a unit may answer, as JSON: it clears the screen, sets the clipboard, and reverses
// the order of the text behind it.
const evil = `a\u001b[2J\u001b]52;c;cm0=\u0007` + "\u009b2J\u202eb" + `\r\n\tc`

func TestTerminal_TextsOfUnitsDoNotControlIt(t *testing.T) {
	const fine = `{"success":true,"message":"` + evil + `","meta":{"next_cursor":"` + evil + `"},"data":`
	for name, c := range map[string]struct {
		status int
		answer string
		args   []string
	}{
		"a status": {200, fine + `{"connectivity":{"firmware_version":"` + evil + `"},"oem_data":{"` + evil + `":["` + evil +
			`",{"k":"` + evil + `"}]}}}`, []string{"status", "42"}},
		"a list":    {200, fine + `[{"id":1,"plate_number":"` + evil + `"}]}`, []string{"vehicles"}},
		"a command": {200, fine + `{"detail":"` + evil + `"}}`, []string{"command", "0192c7d4-0000-7000-8000-000000000001"}},
		"a command that fails": {502, `{"success":false,"message":"` + evil + `","request_id":"` + evil +
			`","error":{"code":"command_failed","outcome":"failed","command_id":"` + evil + `"}}`, []string{"lock", "42"}},
		"no answer of ours": {502, evil, []string{"lock", "42"}},
	} {
		for _, format := range []string{"table", "json"} {
			serving(t, says(c.status, c.answer))
			args := append(c.args, "--output", format)
			if c.args[0] == "lock" {
				args = c.args
			}
			printed, said, failure := runTool(t, args...)
			if c.status != http.StatusOK {
				said += errorOutput(t, failure)
			}
			for _, line := range strings.FieldsFunc(printed+said, func(r rune) bool { return r == '\n' || r == '\t' }) {
				if telematics.Printable(line) != line {
					t.Errorf("%s as %s: printed %q", name, format, line)
				}
			}
			if name == "a list" && format == "table" && strings.Count(printed, "\n") != 1 {
				t.Errorf("a text makes another row: %q", printed)
			}
		}
	}
}

// errorOutput returns what main prints of an error.
func errorOutput(t *testing.T, err error) string {
	t.Helper()
	file, failure := os.CreateTemp(t.TempDir(), "stderr")
	require.NoError(t, failure)
	defer file.Close()
	before := os.Stderr
	os.Stderr = file
	printError(err)
	os.Stderr = before
	text, failure := os.ReadFile(file.Name())
	if failure != nil || !strings.HasPrefix(string(text), "motorpool: ") {
		t.Fatalf("printed %q, %v", text, failure)
	}
	return string(text)
}

func TestTerminal_EventsStayTheSameJSON(t *testing.T) {
	data := `{"text":"` + strings.NewReplacer("\u009b", `\u009b`, "\u202e", `\u202e`).Replace(evil) + `"}`
	stream := "id: 1-0\nevent: alarm\ndata: {\"text\":\"" + evil + "\"}\n\n"
	for output, want := range map[string]string{
		"table": "alarm " + data + "\n", "json": `{"id":"1-0","event":"alarm","data":` + data + "}\n",
	} {
		var to strings.Builder
		e := events{remote: remote{presentation: presentation{Output: output}}}
		_ = (&position{}).read(strings.NewReader(stream), func(l eventLine) error { return e.printLine(&to, l) })
		assert.Equal(t, to.String(), want, "%s: printed", output)
	}
}

func TestTerminal_LostOutputIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	serving(t, says(http.StatusOK, done(`{"state":"succeeded"}`)))
	t.Setenv("MOTORPOOL_DATABASE_URL", storetest.NewDatabase(t))
	fromStdin(t, smallFleet)
	_, err = output(t, "import", "-") // which has an entry
	require.NoError(t, err)
	for _, args := range []string{"keys new", "lock 1 --output table", "lock 1 --output json", "activity export"} {
		before := os.Stdout
		os.Stdout = full
		err = run(context.Background(), strings.Fields(args))
		os.Stdout = before
		if exitCode(err) != exitUnknown || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s with a full disk: exit code %d, %v; want %d", args, exitCode(err), err, exitUnknown)
		}
	}
	tool(t, "keys", "new").succeeds()
}

// printsItself matches output that does not go through terminal.
var printsItself = regexp.MustCompile(`fmt\.Print|os\.Std(out|err)\b`)

func TestTerminal_AllOutputGoesThroughIt(t *testing.T) {
	may := map[string]int{"table.go": 3, "serve.go": 1}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if n := len(printsItself.FindAll(text, -1)); n > may[file] && !strings.HasSuffix(file, "_test.go") {
			t.Errorf(
				"%s prints %d times to os.Stdout, os.Stderr or with fmt.Print, want %d: print to stdout or stderr of table.go",
				file, n, may[file],
			)
		}
	}
}

func TestBookings_ShowThePriceWithoutTheDeposit(t *testing.T) {
	serving(t, says(http.StatusOK, done(`[{"id":1,"pricing":{"rental_total":2.38,"deposit":200.00,"total":202.38,"currency":"EUR"}}]`)))
	list := tool(t, "bookings", "--output", "table").prints("2.38")
	list.must(!strings.Contains(list.printed, "202.38"), "no deposit in the price")
}
