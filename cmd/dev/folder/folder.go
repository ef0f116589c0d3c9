// Package folder is an installation in a folder of this machine: its keys and passwords, tokens,
// simulated cars, and what must end with it. lab/world adds servers and instances.
package folder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"motorpool/guard"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
)

// Folder is what belongs to one folder. Its methods are not safe for concurrent use; those of its
// parts are.
type Folder struct {
	Secrets
	Dir string
	Log *slog.Logger

	TokenLifetime time.Duration // of the tokens that TokenAt returns. Defaults to 30 days

	undo []func() error
}

// New opens the secrets of a folder, which must exist, and creates those that are missing. It
// starts nothing.
func New(dir string, log *slog.Logger) (*Folder, error) {
	s, err := openSecrets(dir)
	return &Folder{Secrets: s, Dir: dir, Log: log}, err
}

// OnClose adds a function that Close calls. Close calls the last one first.
func (f *Folder) OnClose(undo func() error) { f.undo = append(f.undo, undo) }

// Close ends everything in reverse order, and returns all errors. A second Close does nothing.
func (f *Folder) Close() error {
	var failures []error
	for i := len(f.undo) - 1; i >= 0; i-- {
		failures = append(failures, f.undo[i]())
	}
	f.undo = nil
	return errors.Join(failures...)
}

// Path returns the path of a file in the folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// StartCars runs a simulated fleet until Close. It does not wait for connections. If the fleet ends
// by itself, fail is called with the reason.
func (f *Folder) StartCars(ctx context.Context, fail func(error), c simulator.FleetConfig, cars ...simulator.Config) *simulator.Fleet {
	fleet := simulator.NewFleet(c, cars...)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := fleet.Run(ctx); err != nil {
			fail(fmt.Errorf("cars: %w", err))
		}
	})
	f.OnClose(func() error { stop(); running.Wait(); return nil })
	return fleet
}

// pollInterval is between two checks of a condition.
const pollInterval = 50 * time.Millisecond

// ErrNotInTime means that a condition did not hold in time.
var ErrNotInTime = fmt.Errorf("not in time: %w", context.DeadlineExceeded)

// Eventually waits until a condition holds. The error names the condition that did not hold in
// time, and is ErrNotInTime unless the context ended before.
func Eventually(ctx context.Context, within time.Duration, condition string, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, ErrNotInTime)
	defer cancel()
	for !holds(ctx) {
		if !guard.Pause(ctx, pollInterval) {
			return fmt.Errorf("not within %v: %s: %w", within, condition, context.Cause(ctx))
		}
	}
	return nil
}

const probeTimeout = 2 * time.Second

// Probe is the HTTP client for an instance's internal listener. It uses no connection twice.
var Probe = &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

// Ready reports whether the instance with an internal listener at this URL is ready.
func Ready(ctx context.Context, internal string) bool {
	return devstack.IsReady(ctx, Probe, internal+"/readyz")
}
