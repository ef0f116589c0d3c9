package telematics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"motorpool/internal/require"
)

// The author of a unit has only docs/protocol.md and the golden messages that it names, so it must
// agree with the codec.
func TestProtocolDocument_AgreesWithTheCodec(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "protocol.md"))
	require.NoError(t, err)
	document := string(b)
	unwrapped := strings.Join(strings.Fields(document), " ")
	says := func(what, text string) {
		if !strings.Contains(document, text) && !strings.Contains(unwrapped, text) {
			t.Errorf("%s is missing: %s", what, text)
		}
	}
	for _, field := range Fields {
		if field.IsOfArrival() {
			continue
		}
		if field.IsRaw() {
			says("reserved name", "`"+field.String()+"`")
			continue
		}
		section, name, _ := strings.Cut(field.String(), ".")
		says("section", "`"+section+"`")
		if name != "" {
			says("field", "`"+name+"`")
		}
	}
	for _, t := range actions {
		says("action with its lane", fmt.Sprintf("| `%s` | `%s` |", t.action, t.lane))
	}
	for _, reason := range []string{
		BadSignature, WrongAudience, ClockUnset, ClockBehind, TTLTooLong, TooLate, OutOfOrder, Unsupported, StateConflict, Interrupted,
		Moving, DoorOpen, IgnitionOn,
	} {
		says("reason", "`"+reason+"`")
	}
	for what, text := range map[string]string{
		"size of a message [TEL-4]":            fmt.Sprintf("at most %d KiB", MaxMessage>>10),
		"size of a list":                       fmt.Sprintf("| lists in `diagnostics` | %d elements |", MaxTexts),
		"size of a text":                       fmt.Sprintf("| %d bytes of UTF-8 |", MaxText),
		"ids of keys [PRE-4]":                  fmt.Sprintf("at most %d of at most %d bytes", MaxKeys, MaxKeyID),
		"depth of the manufacturer's data":     fmt.Sprintf("| `oem_data` | %d levels |", maxDepth),
		"speed of a moving vehicle [CMD-7]":    fmt.Sprintf("a known speed of at most %g km/h", MovingKmh),
		"age of a speed that forbids":          fmt.Sprintf("by a report of the last %.0f s", FreshFor.Seconds()),
		"clock that runs ahead [TEL-5]":        fmt.Sprintf("A report more than %.0f minutes ahead", MaxAhead.Minutes()),
		"clock that is behind [PRE-1]":         fmt.Sprintf("dated more than %.0f minutes back", LiveWithin.Minutes()),
		"silence of one that is online":        fmt.Sprintf("without any message for %.0f minutes", OnlineFor.Minutes()),
		"start of what a time can be [TEL-5]":  fmt.Sprintf("dated before %d", earliest.Year()),
		"longest pulse of an attention signal": fmt.Sprintf("integer, 1–%d", MaxPulse.Milliseconds()),
	} {
		says(what, text)
	}
	for kind, n := range map[string]int{"TOP": 4, "CMD": 9, "ACK": 4, "TEL": 5, "PRE": 4} {
		for i := range n {
			says("clause", fmt.Sprintf("**[%s-%d]**", kind, i+1))
		}
	}
	for _, pattern := range []string{
		"command-lock.jws", "answer-*.json", "presence-*.json", "report-partial.json", "report-repeats-answers.json",
	} {
		paths, err := filepath.Glob(filepath.Join("testdata", "wire", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("found no golden message %s: %v", pattern, err)
		}
		for _, path := range paths {
			message, err := os.ReadFile(path)
			require.NoError(t, err)
			says(path, "\n"+string(message)+"\n")
		}
	}
	ring, err := os.ReadFile(filepath.Join("testdata", "keyring.jwks"))
	require.NoError(t, err)
	if !strings.Contains(strings.ReplaceAll(unwrapped, " ", ""), strings.Join(strings.Fields(string(ring)), "")) {
		t.Error("the public test keys are missing")
	}
}

// The numbers at both ends of a field's documented range are accepted, and none outside.
func TestProtocolDocument_HasTheRangesOfNumbers(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "docs", "protocol.md"))
	require.NoError(t, err)
	row := regexp.MustCompile("\\| (?:`([a-z_]+)`)? *\\| `([a-z_]+)` \\| number \\|[^|]*\\| ([−0-9,]+) to ([−0-9,]+)")
	number := strings.NewReplacer("−", "-", ",", "")
	section, found := "", map[Field]bool{}
	for line := range strings.Lines(string(document)) {
		if named, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && strings.HasPrefix(line, "| `") {
			section = named
		}
		cells := row.FindStringSubmatch(line)
		if cells == nil {
			continue
		}
		field, _ := FieldOf(section + "." + cells[2])
		found[field] = true
		for _, end := range []struct {
			text    string
			outside float64
		}{{cells[3], -0.001}, {cells[4], 0.001}} {
			n, err := strconv.ParseFloat(number.Replace(end.text), 64)
			require.NoError(t, err)
			_, inside := ParseValue(field, encode(n))
			_, outside := ParseValue(field, encode(n+end.outside))
			if inside != nil || outside == nil {
				t.Errorf("protocol.md says %s to %s of %s, but field.go has another range", cells[3], cells[4], field)
			}
		}
	}
	for _, field := range Fields {
		if _, err := ParseValue(field, json.RawMessage("1e300")); FaultOf(err) == OutOfRange && !found[field] && !field.IsOfArrival() {
			t.Errorf("protocol.md has no range of %s: write | `name` | number | unit | 0 to 100 |", field)
		}
	}
}

// [PRE-1] The document requires at least 16 characters.
func TestGoldenMessages_SessionsAreLongEnough(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "wire", "presence-*.json"))
	require.NoError(t, err)
	found := 0
	for _, path := range append(paths, filepath.Join("..", "docs", "protocol.md")) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, session := range regexp.MustCompile(`"session":"([^"]*)"`).FindAllSubmatch(text, -1) {
			if found++; len(session[1]) < 16 {
				t.Errorf("%s: session %q has %d characters", path, session[1], len(session[1]))
			}
		}
	}
	if found < 6 {
		t.Errorf("only %d sessions found, want at least 6", found)
	}
}

func TestGoldenMessages_AreExplained(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("testdata", "wire", "README.md"))
	require.NoError(t, err)
	files, vectors, _ := strings.Cut(string(readme), "## What a unit must answer")
	entries, err := os.ReadDir(filepath.Join("testdata", "wire"))
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		if entry.Name() != "README.md" && !strings.Contains(files, "| `"+entry.Name()+"` |") {
			t.Errorf("%s is not explained in README.md", entry.Name())
		}
		command, ok := strings.CutSuffix(strings.TrimPrefix(entry.Name(), "command-"), ".jws")
		if ok && !strings.Contains(vectors, "`"+command+"`") {
			t.Errorf("README.md does not say what a unit answers to %s", entry.Name())
		}
	}
	for line := range strings.Lines(files) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |"); ok && !slices.Contains(names, name) {
			t.Errorf("%s is explained, but does not exist", name)
		}
	}
}
