package service_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"motorpool/internal/app"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

const (
	metricsDocument = "../../docs/metrics.md"
	metricsBegin    = "<!-- UPDATE=1 go test -run Metrics ./lab/service writes this table. -->\n\n"
	metricsEnd      = "\n<!-- end of the metrics -->"
)

// The table of docs/metrics.md is what the service exports, and another one lists what may be
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
	require.NoError(t, err)
	if families["go_goroutines"] == nil || families["process_cpu_seconds_total"] == nil {
		t.Error("the metrics of Go or of the process are missing")
	}

	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.HasPrefix(name, "motorpool_") {
			continue
		}
		family := families[name]
		if len(family.GetHelp()) < 20 || !strings.HasSuffix(family.GetHelp(), ".") {
			t.Errorf("%s: help %q", name, family.GetHelp())
		}
		fmt.Fprintf(
			&table, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(family.GetType().String()), labelNames(family),
			family.GetHelp(),
		)
	}
	page, err := os.ReadFile(metricsDocument)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(page), metricsBegin)
	written, after, ends := strings.Cut(rest, metricsEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the markers of the metrics", metricsDocument)
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(metricsDocument, []byte(before+metricsBegin+table.String()+metricsEnd+after), 0o644))
	} else if written != table.String() {
		t.Errorf("%s differs from what the service exports:\n%s\nwant\n%s", metricsDocument, written, table.String())
	}
	for _, name := range regexp.MustCompile("motorpool_[a-z_]+").FindAllString(string(page), -1) {
		if families[name] == nil {
			t.Errorf("%s names %s, which is not exported", metricsDocument, name)
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

// labelNames returns the sorted names of the labels of all series of a metric, as code.
func labelNames(family *dto.MetricFamily) string {
	names := map[string]bool{}
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			names["`"+l.GetName()+"`"] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
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
