package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestSummary_NamesFailuresAndEndsWithTheLinesOfThePackages(t *testing.T) {
	var in strings.Builder
	say := func(action, pkg, test, output string) {
		fmt.Fprintf(&in, `{"Action":%q,"Package":%q,"Test":%q,"Output":%q}`+"\n", action, pkg, test, output)
	}
	in.WriteString("go: downloading something\n")
	say("output", "a", "TestFine", "a secret of a passing test\n")
	say("pass", "a", "TestFine", "")
	say("output", "a", "", "ok  \ta\t0.1s\n")
	say("pass", "a", "", "")
	for n := range 100 {
		say("output", "b", "TestBad/real", fmt.Sprintf("line %d\n", n))
	}
	say("fail", "b", "TestBad/real", "")
	say("fail", "b", "TestBad", "")
	say("output", "b", "", "FAIL\tb\t0.2s\n")
	say("fail", "b", "", "")
	in.WriteString(`{"Action":"build-output","ImportPath":"c [c.test]","Output":"c.go:1: undefined: x\n"}` + "\n")
	say("output", "c", "", "FAIL\tc [build failed]\n")
	say("fail", "c", "", "")

	var out strings.Builder
	a := newAccount(&out)
	a.read(strings.NewReader(in.String()))
	a.finish(83*time.Second, "TestY: no redis\nTestY: no redis\n")
	text := out.String()
	for _, part := range []string{"go: downloading something\n", "line 60\n", "line 99\n", "undefined: x",
		"did not run:\n  TestY: no redis\n\n",
		"failed:\n  b TestBad/real\n  c\n", "1 tests passed, 2 failed, 0 skipped; took 1m23s\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the summary lacks %q", part)
		}
	}
	for _, part := range []string{"line 59\n", "secret"} {
		if strings.Contains(text, part) {
			t.Errorf("the summary has %q, want it left out", part)
		}
	}
	if !strings.HasSuffix(text, "\nline 99\nFAIL\tb\t0.2s\nc.go:1: undefined: x\nFAIL\tc [build failed]\n") ||
		!strings.Contains(text, "\nok  \ta\t0.1s\nline 88\n") {
		t.Errorf("the summary does not end with the lines of go test:\n%s", text)
	}
}

func TestLast_KeepsTheMessagesOfTheTestBeforeItsLog(t *testing.T) {
	const why, log = "    bad_test.go:7: got 1, want 2\n", "    time=now level=INFO msg=stopped\n"
	for name, c := range map[string]struct{ lines, want []string }{
		"few lines":            {[]string{why, log}, []string{why, log}},
		"a long log":           {[]string{log, why, log, log, log}, []string{why, log, log}},
		"nothing but messages": {[]string{why + "1", why + "2", why + "3", why + "4"}, []string{why + "2", why + "3", why + "4"}},
	} {
		assert.EqualSlices(t, last(c.lines, 3), c.want, "%s", name)
	}
}

func TestSummary_PrintsHowAPackageCrashed(t *testing.T) {
	var in, out strings.Builder
	say := func(action, test, output string) {
		fmt.Fprintf(&in, `{"Action":%q,"Package":"a","Test":%q,"Output":%q}`+"\n", action, test, output)
	}
	say("output", "TestRunning", "SIGSEGV: segmentation violation\n")
	for n := range 100 {
		say("output", "TestRunning", fmt.Sprintf("frame %d\n", n))
	}
	say("output", "", "FAIL\ta\t0.2s\n")
	say("fail", "", "")
	newAccount(&out).read(strings.NewReader(in.String()))
	if !strings.Contains(out.String(), "SIGSEGV") || !strings.Contains(out.String(), "frame 99") {
		t.Errorf("the summary does not tell how the package crashed:\n%s", out.String())
	}
}

func TestSummary_RepeatsOnlyWhatWasLate(t *testing.T) {
	const waited = "    a_test.go:7: after 1m0s not: see header\n"
	const attribute = "=== ATTR  TestA late true\n    a_test.go:9: 0 rows\n"
	commands := split([]string{"go", "test", "-json", "-p", "2", "motorpool/b", "--", "go", "test", "-race", "./lab/a", "motorpool/a"})
	for name, c := range map[string]struct {
		failed map[string]string // test: its output
		want   string            // arguments of the repetition; empty: none
	}{
		"a wait":          {map[string]string{"TestA/x": waited}, "-run ^(TestA)$ motorpool/a"},
		"a poll":          {map[string]string{"TestA": "    a_test.go:7: waited 30s for: rows\n"}, "-run ^(TestA)$ motorpool/a"},
		"a time":          {map[string]string{"TestA": "    a_test.go:7: took 479.6ms, want less\n"}, "-run ^(TestA)$ motorpool/a"},
		"a server":        {map[string]string{"TestA": "    a_test.go:7: lock: 503 {Code:x}\n"}, "-run ^(TestA)$ motorpool/a"},
		"a log before":    {map[string]string{"TestA": "    a_test.go:5: a log\n" + attribute}, "-run ^(TestA)$ motorpool/a"},
		"a result after":  {map[string]string{"TestA": attribute + "    a_test.go:3: a leak\n"}, ""},
		"another word":    {map[string]string{"TestA": "=== ATTR  TestA slow true\n    a_test.go:9: 0 rows\n"}, ""},
		"a wrong result":  {map[string]string{"TestA": waited + "    a_test.go:9: 2 charges, want 1\n"}, ""},
		"one of two":      {map[string]string{"TestA": waited, "TestB": "    a_test.go:9: 2 charges, want 1\n"}, ""},
		"a race":          {map[string]string{"TestA": waited + "WARNING: DATA RACE\n"}, ""},
		"a race at last":  {map[string]string{"TestA": waited, "": "WARNING: DATA RACE\n"}, ""},
		"a crash":         {map[string]string{"TestA": "panic: test timed out after 30m0s\n"}, ""},
		"no message":      {map[string]string{"TestA": "exit status 1\n"}, ""},
		"a whole package": {map[string]string{"": "a_test.go:7: deadline exceeded\n"}, ""},
		"too many":        {map[string]string{"TestA": waited, "TestB": waited, "TestC": waited, "TestD": waited}, ""},
	} {
		a := newAccount(io.Discard)
		// The package ends last.
		for _, test := range slices.Backward(slices.Sorted(maps.Keys(c.failed))) {
			for line := range strings.Lines(c.failed[test]) {
				a.note(event{Action: "output", Package: "motorpool/a", Test: test, Output: line})
			}
			a.note(event{Action: "fail", Package: "motorpool/a", Test: test})
		}
		var want [][]string
		if c.want != "" {
			want = [][]string{strings.Fields("go test -race -p 1 -parallel 1 " + c.want)}
		}
		exited := errors.New("exit status 1")
		assert.Equal(t, fmt.Sprint(a.repetitions(commands, []error{nil, exited})), fmt.Sprint(want), "%s", name)
		if again := a.repetitions(commands, []error{exited, exited}); again != nil {
			t.Errorf("%s: repeats %v, although the other command failed, too", name, again)
		}
	}
}

func TestSummary_NamesWhatWasLateAndPassedAlone(t *testing.T) {
	var out strings.Builder
	all, alone := newAccount(&out), newAccount(&out)
	for _, e := range []event{
		{Action: "pass", Package: "b", Test: "TestFine"}, {Action: "output", Package: "b", Output: "ok  \tb\t1s\n"},
		{Action: "output", Package: "a", Test: "TestA/x", Output: "    a_test.go:7: after 1m0s not: see header\n"},
		{Action: "fail", Package: "a", Test: "TestA/x"}, {Action: "fail", Package: "a", Test: "TestA"},
		{Action: "output", Package: "a", Output: "FAIL\ta\t2s\n"}, {Action: "fail", Package: "a"},
	} {
		all.note(e)
	}
	for _, e := range []event{{Action: "pass", Package: "a", Test: "TestA"}, {Action: "output", Package: "a", Output: "ok  \ta\t1s\n"}} {
		alone.note(e)
	}
	all.replace(alone)
	all.finish(time.Minute, "")
	if text := out.String(); !strings.Contains(text, "passed when repeated alone:\n  a TestA/x\n") ||
		!strings.HasSuffix(text, "3 tests passed, 0 failed, 0 skipped; took 1m0s\n\nok  \tb\t1s\nok  \ta\t1s\n") {
		t.Errorf("the account is\n%s", text)
	}
}
