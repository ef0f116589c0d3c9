package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// readme is a part of README.md: what is to be pasted, and the answers that it shows.
type readme struct{ paste, shown string }

var (
	fence        = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	continued    = regexp.MustCompile(`\\\n *`)
	calls        = regexp.MustCompile(`(?m)^(?:client|curl) .*$`)
	unspaced     = regexp.MustCompile(`\s`)
	saidToFail   = regexp.MustCompile(`# .*: (\d{3})$`)
	buildsSigner = "go build -o bin/motorpool ./cmd/motorpool\n"
)

func readReadme(t *testing.T, heading string) (r readme) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	part, _, ends := strings.Cut(rest, "\n## ")
	if !found || !ends {
		t.Fatalf("README.md has no part %q", heading)
	}
	for _, block := range fence.FindAllStringSubmatch(part, -1) {
		if block[1] == "json" {
			r.shown += block[2]
			continue
		}
		r.paste += block[2]
	}
	return r
}

// expected returns the status of the answer to each call that is pasted, as far as README.md says:
// 2 is any success.
func (r readme) expected() (statuses []string, lines []string) {
	for _, line := range calls.FindAllString(continued.ReplaceAllString(r.paste, " "), -1) {
		status := "2"
		if failing := saidToFail.FindStringSubmatch(line); failing != nil {
			status = failing[1]
		}
		statuses, lines = append(statuses, status), append(lines, line)
	}
	return statuses, lines
}

// pasted runs a script in a shell that has read the world's variables, as a newcomer would who has
// just cloned this, and returns each answer with its status.
func (l *live) pasted(script string) (answers []struct{ body, status string }) {
	l.Helper()
	const mark = "\n--status "
	command := exec.Command("bash", "-eu", "-c", `set -a; source "$0"; set +a
curl() { command curl -sS -w '`+strings.ReplaceAll(mark, "\n", `\n`)+`%{http_code}\n' "$@"; }
set +u
`+script, filepath.Join(l.dir, envFile))
	command.Dir = l.dir
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil || said.Len() > 0 {
		l.Fatalf("what README.md has to paste ends with: %v\n%s\n%s", err, &said, out)
	}
	for answer := range strings.SplitAfterSeq(string(out), "\n") {
		if status, ok := strings.CutPrefix(answer, strings.TrimPrefix(mark, "\n")); ok {
			answers[len(answers)-1].status = strings.TrimSpace(status)
		} else if strings.HasPrefix(answer, "{") {
			answers = append(answers, struct{ body, status string }{body: answer})
		}
	}
	return answers
}

// buildSigner puts the program where README.md builds it. It is built as this test is, so that what
// is built already is used.
func (l *live) buildSigner() {
	l.Helper()
	args := []string{"build", "-o", filepath.Join(l.dir, "bin", "motorpool")}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, "../motorpool")...).CombinedOutput(); err != nil {
		l.Fatalf("build: %v\n%s", err, out)
	}
}

// What README.md has to paste about bookings and cards works in the order in which it stands there:
// it is the first thing that a newcomer tries.
func TestBookingsAndCardsOfTheReadmeArePasted(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), onSharedPostgres(t))
	l.buildSigner()
	r := readReadme(t, "Bookings and cards")
	if !strings.Contains(r.paste, buildsSigner) {
		t.Fatalf("README.md does not build what signs: %s", r.paste)
	}
	script := strings.Replace(r.paste, buildsSigner, "", 1)
	statuses, lines := r.expected()
	if len(lines) < 9 {
		t.Fatalf("README.md has %d calls to paste", len(lines))
	}
	answers := l.pasted(script)
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d calls: %v", len(answers), len(lines), answers)
	}
	for i, answer := range answers {
		if !strings.HasPrefix(answer.status, statuses[i]) || !json.Valid([]byte(answer.body)) {
			t.Errorf("%s\nis answered with %s %s", lines[i], answer.status, answer.body)
		}
	}
	// What stands between the dots of the answer that is shown, but for its beginning, which has
	// ids.
	shown := strings.Split(unspaced.ReplaceAllString(r.shown, ""), "…")
	for _, piece := range shown[1:] {
		if !strings.Contains(unspaced.ReplaceAllString(answers[0].body, ""), piece) {
			t.Errorf("README.md shows %s, but the answer is %s", piece, answers[0].body)
		}
	}
}
