package app_test

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"motorpool/cmd/internal/app"
	"motorpool/simulator/devstack"
)

// The tables of docs/metrics.md list every metric with its labels and no other, and what may be
// dropped, by kind and reason.
func TestMetrics_AreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	authority, err := devstack.NewAuthority(filepath.Join(s.dir, "authority"))
	s.must(err)
	pair, err := authority.Issue("public")
	s.must(err)
	i := s.serve(func(c *app.Config) {
		c.GeocoderURL, c.HTTPCert, c.HTTPKey = "http://127.0.0.1:1", pair.CertFile, pair.KeyFile
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

	exported := map[string]string{}
	dropped := map[string]bool{}
	for name, family := range families {
		if strings.HasPrefix(name, "motorpool_") {
			exported[name] = labelNames(family)
			if len(family.GetHelp()) < 20 || !strings.HasSuffix(family.GetHelp(), ".") {
				t.Errorf("%s: help %q", name, family.GetHelp())
			}
		}
		if name == "motorpool_dropped_total" {
			for _, m := range family.GetMetric() {
				dropped[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = true
			}
		}
	}
	documented, documentedDrops := documentedMetrics(t)
	if !maps.Equal(exported, documented) {
		t.Errorf("exported, with labels:\n%v\ndocumented:\n%v", exported, documented)
	}
	if !maps.Equal(dropped, documentedDrops) {
		t.Errorf("dropped, by kind and reason:\n%v\ndocumented:\n%v", dropped, documentedDrops)
	}
}

// labelNames returns the sorted names of the labels of all series of a metric.
func labelNames(family *dto.MetricFamily) string {
	names := map[string]bool{}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			names[l.GetName()] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

// documentedMetrics returns the sorted labels of each documented metric, and what may be dropped,
// by kind and reason.
func documentedMetrics(t *testing.T) (labels map[string]string, dropped map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	labels, dropped = map[string]string{}, map[string]bool{}
	drops := false
	for row := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(row), "|")
		switch {
		case len(cells) < 6:
			drops = false
		case strings.TrimSpace(cells[1]) == "`kind`":
			drops = true
		case drops:
			for _, kind := range quoted(cells[1]) {
				for _, reason := range quoted(cells[2]) {
					dropped[kind+" "+reason] = true
				}
			}
		case strings.Contains(cells[1], "`motorpool_"):
			labels[quoted(cells[1])[0]] = strings.Join(slices.Sorted(slices.Values(quoted(cells[2]))), " ")
			if len(cells) != 7 || strings.TrimSpace(cells[4]) == "" || strings.TrimSpace(cells[5]) == "" {
				t.Errorf("a row without a meaning or an action: %s", row)
			}
		}
	}
	return labels, dropped
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
