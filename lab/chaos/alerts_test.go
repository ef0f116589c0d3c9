package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"motorpool/deploy/prometheus"
	"motorpool/lab/chaos/plain"
)

func TestAlerts_EachShippedOneHasAFaultOrAReason(t *testing.T) {
	shipped, fired := map[string]bool{}, map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(prometheus.Rules, -1) {
		shipped[found[1]] = true
	}
	if len(shipped) < 30 {
		t.Fatalf("%d alerts are shipped, want at least 30", len(shipped))
	}
	of := maps.Clone(AlertsOf)
	of[postgresAsync] = plain.FailoverAlerts
	for name, alerts := range of {
		if Find(name) == nil && name != postgresAsync {
			t.Errorf("no fault is called %q", name)
		}
		for _, alert := range strings.Fields(alerts.Must) {
			fired[alert] = true
		}
		for _, alert := range strings.Fields(alerts.Must + " " + alerts.May) {
			if !shipped[alert] {
				t.Errorf("%q has the alert %s, which is not shipped", name, alert)
			}
		}
	}
	for alert, reason := range Unprovoked {
		if !shipped[alert] || fired[alert] || reason == "" {
			t.Errorf("%s is unprovoked: shipped %t, an alert of a fault %t, reason %q", alert, shipped[alert], fired[alert], reason)
		}
	}
	for _, alert := range slices.Sorted(maps.Keys(shipped)) {
		if !fired[alert] && Unprovoked[alert] == "" {
			t.Errorf("no fault must fire %s, and Unprovoked has no reason", alert)
		}
	}
}
