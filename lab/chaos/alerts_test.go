package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"motorpool/deploy/prometheus"
)

// unprovoked are the shipped alerts that no fault must fire, and why. Their rules are tested with
// invented series, in deploy/prometheus/rules_test.yml.
var unprovoked = map[string]string{
	"MotorpoolAbsent":                  "no fault ends all instances",
	"MotorpoolAgencyKeyExpires":        "a date in the future",
	"MotorpoolAlertsStale":             "needs four minutes: other alerts come first",
	"MotorpoolAnswerContradicts":       "no simulated unit executes what it has rejected: broker tests have such an answer",
	"MotorpoolCertificateExpires":      "a date in the future",
	"MotorpoolCertificateUnreadable":   "instances have no TLS here",
	"MotorpoolChargesForOperator":      "the round of money has no Prometheus",
	"MotorpoolChargesUnknown":          "the round of money has no Prometheus",
	"MotorpoolClockSkew":               "clocks are ahead by more than the second at which an instance stops",
	"MotorpoolCommandsFailingSlow":     "the load is too high for it: MotorpoolCommandsFailing comes first",
	"MotorpoolCommandsNotMoved":        "needs hours that the service counts",
	"MotorpoolCommandsUnknown":         "about one command in twenty is unknown at rest: see Always",
	"MotorpoolConnectionsRefused":      "callers open fewer connections than an instance takes",
	"MotorpoolIngestBehind":            "needs a minute that the service counts, or more reports than the cars send",
	"MotorpoolMQTTMemory":              "would need the memory of the machine",
	"MotorpoolPanics":                  "no fault makes the service panic",
	"MotorpoolMessagesDropped":         "the queues are larger than what the load fills for certain",
	"MotorpoolMessagesUnsound":         "units of the round send what is valid",
	"MotorpoolPartitionsEnding":        "needs days",
	"MotorpoolPostgresClockLeapt":      "Postgres's clock is looked at every 30 s, and leaps for less",
	"MotorpoolPaymentsRefused":         "the round of money has no Prometheus",
	"MotorpoolAlertmanagerUnavailable": "the rounds set no --alertmanager-url",
	"MotorpoolPaymentsUnrecorded":      "the round of money has no Prometheus",
	"MotorpoolSigningKeyOld":           "needs a year",
	"MotorpoolSigningKeysDiffer":       "needs a fault of 15 minutes, 90 s here: MotorpoolNotReady comes first",
	"MotorpoolStandbyAsynchronous":     "needs a fault of 10 minutes, a minute here",
}

func TestAlerts_EachShippedOneHasAFaultOrAReason(t *testing.T) {
	shipped, fired := map[string]bool{}, map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(prometheus.Rules, -1) {
		shipped[found[1]] = true
	}
	if len(shipped) < 30 {
		t.Fatalf("%d alerts are shipped, want at least 30", len(shipped))
	}
	for name, alerts := range AlertsOf {
		if Find(name) == nil {
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
	for alert, reason := range unprovoked {
		if !shipped[alert] || fired[alert] || reason == "" {
			t.Errorf("%s is unprovoked: shipped %t, an alert of a fault %t, reason %q", alert, shipped[alert], fired[alert], reason)
		}
	}
	for _, alert := range slices.Sorted(maps.Keys(shipped)) {
		if !fired[alert] && unprovoked[alert] == "" {
			t.Errorf("no fault must fire %s, and unprovoked has no reason", alert)
		}
	}
}
