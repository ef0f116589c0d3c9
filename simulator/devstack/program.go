package devstack

import (
	"cmp"
	"context"
	"log/slog"
	"os/exec"
	"syscall"
	"time"
)

// ProgramConfig is a program that runs like a server: it says when it serves, and ends cleanly on SIGTERM.
type ProgramConfig struct {
	Name    string
	Command func() *exec.Cmd // made anew for every start
	Serving string           // what it writes once it serves
	Logger  *slog.Logger     // Defaults to silence
}

// Program is a process that can be frozen, killed and restarted.
type Program struct{ *child }

// StartProgram returns when the program serves.
func StartProgram(ctx context.Context, cfg ProgramConfig) (*Program, error) {
	c, err := startChild(ctx, childConfig{
		name:    cfg.Name,
		command: func() (*exec.Cmd, error) { return cfg.Command(), nil },
		ready:   func(_ context.Context, out *output) bool { return out.contains(cfg.Serving) },
		within:  30 * time.Second,
		stop:    syscall.SIGTERM,
		orphan:  syscall.SIGKILL,
		log:     cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return nil, err
	}
	return &Program{c}, nil
}
