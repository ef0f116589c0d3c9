package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"motorpool/internal/require"
)

// readme is a part of README.md: the text to paste, and the response that it shows.
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
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	part, _, ends := strings.Cut(rest, "\n## ")
	if !found || !ends {
		t.Fatalf("README.md has no section %q", heading)
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

// expected returns the status of the response to each pasted request, as far as README.md names it:
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

// pasted runs a script in a shell with the variables of the world, as a developer would after
// cloning the repository, and returns each response with its status.
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
		l.Fatalf("the script of README.md ends with: %v\n%s\n%s", err, &said, out)
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

// buildSigner builds the program at the place where README.md builds it.
func (l *live) buildSigner() {
	l.Helper()
	to := filepath.Join(l.dir, "bin", "motorpool")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", to, "../motorpool").CombinedOutput()
	require.NoError(l, err, "build: %s", out)
}

// The commands of README.md that rent a car work in their order: they are the first that a
// new developer tries. Then the examples of the clients do, as they are in the repository.
func TestReadme_RentingACarWorks(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), onSharedPostgres(t))
	t.Run("README.md", func(t *testing.T) { l.in(t).rentsAsTheReadmeDoes() })
	t.Run("clients", func(t *testing.T) { l.in(t).rentsAsTheExamplesDo() })
}

func (l *live) rentsAsTheReadmeDoes() {
	l.buildSigner()
	r := readReadme(l.T, "Rent a car")
	if !strings.Contains(r.paste, buildsSigner) {
		l.Fatalf("README.md does not build the program that signs: %s", r.paste)
	}
	script := strings.Replace(r.paste, buildsSigner, "", 1)
	statuses, lines := r.expected()
	if len(lines) < 12 {
		l.Fatalf("README.md has %d requests to paste, want at least 12", len(lines))
	}
	answers := l.pasted(script)
	if len(answers) != len(lines) {
		l.Fatalf("%d responses to %d requests: %v", len(answers), len(lines), answers)
	}
	for i, answer := range answers {
		if !strings.HasPrefix(answer.status, statuses[i]) || !json.Valid([]byte(answer.body)) {
			l.Errorf("%s\nhas the response %s %s", lines[i], answer.status, answer.body)
		}
	}
	// The parts between the dots of the shown response are compared, but not its beginning, which
	// has ids.
	shown := strings.Split(unspaced.ReplaceAllString(r.shown, ""), "…")
	for _, piece := range shown[1:] {
		if !strings.Contains(unspaced.ReplaceAllString(answers[0].body, ""), piece) {
			l.Errorf("README.md shows %s, but the response is %s", piece, answers[0].body)
		}
	}
}

// demoRow is a row of the table of the demo fleet: vehicle, what it is, what to try, the answer.
var demoRow = regexp.MustCompile(`(?m)^\| (\d+) \| .* \| (.*) \| (\d{3})(?: ` + "`(\\w+)`" + `)?.* \|$`)

// The table of README.md has a row for each vehicle, which answers as the row says.
func (l *live) answersAsTheReadmeSays() {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(l, err)
	fleet, err := demoFleet(nil)
	require.NoError(l, err)
	rows := demoRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) != len(fleet.record.Vehicles) {
		l.Fatalf("README.md has %d rows, and the fleet %d vehicles", len(rows), len(fleet.record.Vehicles))
	}
	var all sync.WaitGroup
	for i, row := range rows {
		first, _, _ := strings.Cut(row[2], ",")
		vehicle, try := row[1], strings.Trim(first, "`")
		if id := fleet.record.Vehicles[i].ID; vehicle != strconv.Itoa(int(id)) {
			l.Errorf("row %d is of vehicle %s, want %d", i+1, vehicle, id)
		}
		all.Go(func() {
			method, path := "POST", "vehicles/"+vehicle+"/control/"+try
			if try == "status" {
				method, path = "GET", "vehicles/"+vehicle+"/status"
			}
			if r := l.call(method, path, "ADMIN_TOKEN"); strconv.Itoa(r.status) != row[3] || r.Error.Code != row[4] {
				l.Errorf("vehicle %s, %s: %d %s; README.md says %s %s", vehicle, try, r.status, r.Error.Code, row[3], row[4])
			}
		})
	}
	all.Wait()
}
