// Command summary runs "go test -json …", or several of them concurrently, of different packages,
// with "--" between them. It prints a readable account: a line for each package that is done, the
// last lines of each failing test, and at the end how long it took, which tests failed, what did
// not run, and go test's own line of each package, after the last ones of what failed in it.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"motorpool/internal/require"
)

const (
	// keptLines is how many of the last lines of a failing test, or package, are printed.
	keptLines = 40
	// finalLines is how many of them are printed again at the end.
	finalLines = 12
	// mostLate is how many tests are repeated at most; more are not late by chance.
	mostLate = 3
)

// event is a line of "go test -json" (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// test names a test; an empty Test is the package itself.
type test struct{ Package, Test string }

func (t test) String() string { return strings.TrimSpace(t.Package + " " + t.Test) }

// account is what is known of a run.
type account struct {
	to     io.Writer
	mu     sync.Mutex        // guards what follows, and the writer
	output map[test][]string // last lines
	// Leaves: tests without a failed subtest, and packages that failed without one.
	failed []test
	wrong  bool           // something failed for another reason than time
	lines  []line         // go test's own, of packages and of what failed
	counts map[string]int // of tests, by action
}

// line is a line of a package.
type line struct{ Package, Text string }

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: summary go test -json … [-- go test -json …]")
		os.Exit(2)
	}
	begin := time.Now()
	a := newAccount(os.Stdout)
	commands := split(os.Args[1:])
	errs := a.run(commands)
	err := errors.Join(errs...)
	if again := a.repetitions(commands, errs); again != nil {
		alone := newAccount(os.Stdout)
		err = nil
		for _, command := range again {
			fmt.Printf("\nrepeated alone: %s\n", strings.Join(command, " "))
			err = errors.Join(err, alone.execute(command))
		}
		if err == nil {
			a.replace(alone)
		}
	}
	notRun, _ := os.ReadFile(os.Getenv("NOT_RUN_FILE")) // none: everything ran
	a.finish(time.Since(begin), string(notRun))
	if err != nil {
		if exited := (*exec.ExitError)(nil); !errors.As(err, &exited) {
			fmt.Fprintln(os.Stderr, "summary:", err)
		}
		os.Exit(1)
	}
}

// split returns the commands between which there is "--".
func split(args []string) (commands [][]string) {
	for at := slices.Index(args, "--"); at >= 0; at = slices.Index(args, "--") {
		commands, args = append(commands, args[:at]), args[at+1:]
	}
	return append(commands, args)
}

// run executes commands concurrently, and returns the error of each.
func (a *account) run(commands [][]string) []error {
	errs := make([]error, len(commands))
	var running sync.WaitGroup
	for i, args := range commands {
		running.Go(func() { errs[i] = a.execute(args) })
	}
	running.Wait()
	return errs
}

func (a *account) execute(args []string) error {
	command := exec.Command(args[0], args[1:]...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return err
	}
	a.read(out)
	return command.Wait()
}

// isPackage reports whether an argument of go test names packages.
func isPackage(arg string) bool {
	return strings.HasPrefix(arg, "./") || arg == "motorpool" || strings.HasPrefix(arg, "motorpool/")
}

// repetitions returns the commands that run again what was late, one test at a time, each with the
// flags with which it was run; nil: something failed for another reason, or too much, or a command
// failed without a test.
func (a *account) repetitions(commands [][]string, errs []error) (again [][]string) {
	if len(a.failed) == 0 || len(a.failed) > mostLate || a.wrong {
		return nil
	}
	for i, command := range commands {
		var tests, packages []string
		for _, t := range a.failed {
			// The last command is the one of all packages that no other names.
			named := func(c []string) bool { return slices.Contains(c, t.Package) }
			if by := slices.IndexFunc(commands, named); by != i && (by >= 0 || i < len(commands)-1) {
				continue
			}
			top, _, _ := strings.Cut(t.Test, "/")
			tests, packages = append(tests, top), append(packages, t.Package)
		}
		if tests == nil && errs[i] != nil {
			return nil
		}
		if tests == nil {
			continue
		}
		flags := slices.DeleteFunc(slices.Clone(command), isPackage)
		slices.Sort(packages)
		alone := append(flags, "-p", "1", "-parallel", "1", "-run", "^("+strings.Join(tests, "|")+")$")
		again = append(again, append(alone, slices.Compact(packages)...))
	}
	return again
}

// replace replaces what was late by its repetition.
func (a *account) replace(alone *account) {
	fmt.Fprintln(a.to, "\nlate, and passed when repeated alone:")
	for _, t := range a.failed {
		fmt.Fprintf(a.to, "  %s\n", t)
		a.lines = slices.DeleteFunc(a.lines, func(l line) bool { return l.Package == t.Package })
	}
	a.lines = append(a.lines, alone.lines...)
	a.counts["pass"] += a.counts["fail"]
	a.counts["fail"], a.failed = 0, nil
}

func newAccount(to io.Writer) *account {
	return &account{to: to, output: map[test][]string{}, counts: map[string]int{}}
}

func (a *account) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		a.take(line)
		if err != nil {
			return
		}
	}
}

func (a *account) take(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var e event
	switch {
	case line == "":
	case json.Unmarshal([]byte(line), &e) != nil:
		fmt.Fprint(a.to, line) // not of test2json
	default:
		a.note(e)
	}
}

func (a *account) note(e event) {
	built, _, _ := strings.Cut(e.ImportPath, " ") // a package, or "package [package.test]"
	t := test{cmp.Or(e.Package, built), e.Test}
	switch e.Action {
	case "output", "build-output":
		a.keep(t, e)
	case "pass", "skip", "fail":
		if e.Test == "" {
			fmt.Fprintf(a.to, "done  %-40s %6.1fs\n", e.Package, e.Elapsed)
		} else {
			a.counts[e.Action]++
		}
		if e.Action == "fail" {
			a.fail(t)
		}
		delete(a.output, t)
	}
}

func (a *account) keep(t test, e event) {
	words := strings.Fields(e.Output)
	if t.Test == "" && len(words) > 1 && (words[0] == "ok" || words[0] == "FAIL" || words[0] == "?") {
		a.lines = append(a.lines, line{t.Package, e.Output})
		return
	}
	for _, noise := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(e.Output, noise) {
			return
		}
	}
	a.output[t] = last(append(a.output[t], e.Output), keptLines)
}

// message matches a line that a test itself has written, or how its process crashed, rather than
// the log of what it tests.
var message = regexp.MustCompile(`^(\s*\w+_test\.go:\d+: |(panic|fatal error|FATAL|SIG[A-Z]+): |=== ATTR )`)

// lateAttribute matches what a test writes that has waited in vain (require.Late).
var lateAttribute = regexp.MustCompile(`^=== ATTR +\S+ ` + require.LateAttribute + ` `)

// late matches a message of a test that waited in vain or too long, or had a server that was not
// available.
var late = regexp.MustCompile(
	`^\s*\w+_test\.go:\d+: .*(waited [\w.]+ for: |after [\w.]+ (this has not happened|not): |deadline exceeded|took [\w.]+, want|: 503 )`,
)

// isLate reports whether each message of a test says so. Where its attribute says so, the test had
// not failed before, and what it had logged does not matter.
func isLate(lines []string) bool {
	at := slices.IndexFunc(lines, lateAttribute.MatchString)
	said := slices.DeleteFunc(slices.Clone(lines[at+1:]), func(line string) bool { return !message.MatchString(line) })
	if at >= 0 && len(said) > 0 {
		said = said[1:] // what it waited for
	}
	isOther := func(line string) bool { return !late.MatchString(line) }
	return (at >= 0 || len(said) > 0) && !slices.ContainsFunc(said, isOther)
}

// last returns the last of the lines. Messages, which tell why a test failed, are left out only
// where there is nothing else to leave out.
func last(lines []string, most int) []string {
	lines = slices.Clone(lines)
	for len(lines) > most {
		first := max(0, slices.IndexFunc(lines, func(line string) bool { return !message.MatchString(line) }))
		lines = slices.Delete(lines, first, first+1)
	}
	return lines
}

// fail prints the last lines of what failed, unless a part of it did, which has been printed. Those
// of a package include the ones of tests that have not ended: of a crash, go test reports nothing
// else.
func (a *account) fail(t test) {
	a.wrong = a.wrong || strings.Contains(strings.Join(a.output[t], ""), "DATA RACE")
	if slices.ContainsFunc(a.failed, t.contains) {
		return
	}
	a.failed = append(a.failed, t)
	for running, lines := range a.output {
		if t.Test == "" && running != t && t.contains(running) {
			a.output[t] = last(append(a.output[t], lines...), keptLines)
		}
	}
	a.wrong = a.wrong || t.Test == "" || !isLate(a.output[t])
	at := len(a.lines)
	if t.Test == "" {
		at = max(0, at-1) // the package's own line came before
	}
	for i, text := range last(a.output[t], finalLines) {
		a.lines = slices.Insert(a.lines, at+i, line{t.Package, text})
	}
	fmt.Fprintf(a.to, "\n--- failed: %s; its last lines:\n%s\n", t, strings.Join(a.output[t], ""))
}

// contains reports whether another is a subtest, or a test of the package.
func (t test) contains(other test) bool {
	return t.Package == other.Package && (t.Test == "" || strings.HasPrefix(other.Test, t.Test+"/"))
}

func (a *account) finish(took time.Duration, notRun string) {
	if notRun != "" {
		reasons := strings.Split(strings.TrimSpace(notRun), "\n")
		slices.Sort(reasons)
		fmt.Fprintf(a.to, "\ndid not run:\n  %s\n", strings.Join(slices.Compact(reasons), "\n  "))
	}
	if len(a.failed) > 0 {
		fmt.Fprintln(a.to, "\nfailed:")
		for _, t := range a.failed {
			fmt.Fprintf(a.to, "  %s\n", t)
		}
	}
	fmt.Fprintf(
		a.to, "\n%d tests passed, %d failed, %d skipped; took %v\n\n", a.counts["pass"], a.counts["fail"],
		a.counts["skip"], took.Round(time.Second),
	)
	for _, l := range a.lines {
		fmt.Fprint(a.to, l.Text)
	}
}
