package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
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
		if got := last(c.lines, 3); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
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
