package prometheus

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"motorpool/deploy/prometheus"
	"motorpool/internal/require"
)

// anyDuration matches a duration as PromQL and the configuration write them, wherever it stands.
var anyDuration = regexp.MustCompile(`\b(?:\d+(?:ms|[smhdwy]))+\b`)

// timed returns the durations of rules and configuration, in order, read without the pattern that
// Faster uses.
func timed(t *testing.T, configuration, rules string) (all []time.Duration) {
	t.Helper()
	var c struct {
		Global  map[string]string
		Scrapes []map[string]any `json:"scrape_configs"`
	}
	var r struct {
		Groups []struct {
			Interval string
			Rules    []struct {
				Expr, For  string
				KeepFiring string `json:"keep_firing_for"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(configuration), &c))
	require.NoError(t, yaml.Unmarshal([]byte(rules), &r))
	texts := []string{c.Global["scrape_interval"], c.Global["evaluation_interval"]}
	for _, g := range r.Groups {
		texts = append(texts, g.Interval)
		for _, rule := range g.Rules {
			texts = append(texts, rule.Expr, rule.For, rule.KeepFiring)
		}
	}
	for _, text := range texts {
		for _, found := range anyDuration.FindAllString(text, -1) {
			d, err := time.ParseDuration(found)
			require.NoError(t, err, "%q", text)
			all = append(all, d)
		}
	}
	return all
}

func TestFaster_DividesEachDurationOfRulesAndConfiguration(t *testing.T) {
	const factor = 10
	before, after := timed(t, prometheus.Config, prometheus.Rules),
		timed(t, Faster(prometheus.Config, factor), Faster(prometheus.Rules, factor))
	if len(before) < 50 {
		t.Fatalf("%d durations were found, want at least 50", len(before))
	}
	for i := range before {
		before[i] /= factor
	}
	if !slices.Equal(before, after) {
		t.Errorf("the durations are not divided by %d: %v, want %v", factor, after, before)
	}
	if strings.Count(Faster(prometheus.Rules, factor), "\n") != strings.Count(prometheus.Rules, "\n") {
		t.Error("lines were lost")
	}
}
