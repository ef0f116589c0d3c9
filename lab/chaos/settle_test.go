package main

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"motorpool/internal/require"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
)

func TestEndFaults_InstanceThatIsNotReadyIsAViolation(t *testing.T) {
	w, err := world.New(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	// Nothing listens there.
	w.Running = []*world.Instance{{Name: "instance 0", Internal: "http://127.0.0.1:1"}}
	r := &round{World: w}
	synctest.Test(t, func(t *testing.T) {
		r.endFaults(t.Context())
		result := runner.Result{Report: verdict.New(), Awaited: r.awaited.All()}
		addAwaited(&result, nil)
		if len(result.Violations) != 1 || result.Violations[0].Law != comesInTime || len(result.Awaited) != 2 {
			t.Errorf("awaited: %v, violations: %v", result.Awaited, result.Violations)
		}
	})
}
