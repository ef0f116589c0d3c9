package devstack_test

import (
	"os/exec"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

func TestProgram_IsStartedKilledAndRestarted(t *testing.T) {
	p, err := devstack.StartProgram(t.Context(), devstack.ProgramConfig{
		Name: "a program", Serving: "I serve",
		Command: func() *exec.Cmd { return exec.Command("sh", "-c", "echo I serve; exec sleep 60") },
	})
	require.NoError(t, err)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"freeze", p.Pause}, {"thaw", p.Resume}, {"kill", p.Kill}, {"start", p.Restart}, {"end", p.Close},
	} {
		assert.NoError(t, step.do(), "%s", step.name)
	}
	if err := p.Pause(); err == nil {
		t.Error("Pause of an ended program returned no error")
	}
}
