package main

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"motorpool/lab/chaos/verdict"
	"motorpool/simulator/world"
)

func TestEndFaults_InstanceThatIsNotReadyIsAViolation(t *testing.T) {
	w, err := world.New(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	// Nothing listens there.
	w.Running = []*world.Instance{{Name: "instance 0", Internal: "http://127.0.0.1:1"}}
	r := &round{World: w}
	synctest.Test(t, func(t *testing.T) {
		r.endFaults(t.Context())
		report := verdict.New()
		addFindings(&report, &r.findings, nil)
		if len(report.Violations) != 1 || report.Violations[0].Law != comesInTime || r.findings.awaited != 2 {
			t.Errorf("%d awaited, violations: %v", r.findings.awaited, report.Violations)
		}
	})
}
