package service_test

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"motorpool/internal/app"
	"motorpool/simulator/devstack"
)

// Each metric says what it means, those that docs/metrics.md names are exported, and its table of
// what may be dropped has each kind and reason.
func TestMetrics_AreExplained(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	authority, err := devstack.NewAuthority(filepath.Join(s.dir, "authority"))
	s.must(err)
	pair, err := authority.Issue("public")
	s.must(err)
	i := s.serve(func(c *app.Config) {
		c.GeocoderURL, c.HTTPCert, c.HTTPKey = "http://127.0.0.1:1", pair.CertFile, pair.KeyFile
		c.AlertmanagerURL = "http://127.0.0.1:1"
		c.ConsoleURL = "https://localhost"
	})
	status, text := i.fetch(i.internal + "/metrics")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if families["go_goroutines"] == nil || families["process_cpu_seconds_total"] == nil {
		t.Error("the metrics of Go or of the process are missing")
	}

	for name, family := range families {
		if strings.HasPrefix(name, "motorpool_") && (len(family.GetHelp()) < 20 || !strings.HasSuffix(family.GetHelp(), ".")) {
			t.Errorf("%s: help %q", name, family.GetHelp())
		}
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("motorpool_[a-z_]+").FindAllString(string(page), -1) {
		if families[name] == nil {
			t.Errorf("docs/metrics.md names %s, which is not exported", name)
		}
	}

	dropped := map[string]bool{}
	for _, m := range families["motorpool_dropped_total"].GetMetric() {
		dropped[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = true
	}
	if documented := documentedDrops(string(page)); !maps.Equal(dropped, documented) {
		t.Errorf("dropped, by kind and reason:\n%v\ndocumented:\n%v", dropped, documented)
	}
}

// documentedDrops returns what may be dropped, by kind and reason.
func documentedDrops(page string) map[string]bool {
	dropped := map[string]bool{}
	_, table, _ := strings.Cut(page, "| `kind` | `reason` |")
	_, table, _ = strings.Cut(table, "\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			break
		}
		for _, kind := range quoted(cells[1]) {
			for _, reason := range quoted(cells[2]) {
				dropped[kind+" "+reason] = true
			}
		}
	}
	return dropped
}

// quoted returns the words between backticks.
func quoted(cell string) []string {
	var words []string
	for n, part := range strings.Split(cell, "`") {
		if n%2 == 1 {
			words = append(words, part)
		}
	}
	return words
}
