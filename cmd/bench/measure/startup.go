package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/cmd/internal/world"
	"motorpool/simulator/devstack"
)

// Startup measures how soon the service is ready, and what it uses when it is idle. Its floor is a
// process with the same HTTP library that connects to nothing.
type Startup struct {
	Vehicles int           `default:"1000" placeholder:"N" help:"Of the fleet (default ${default})."`
	Idle     time.Duration `default:"5s" placeholder:"DURATION" help:"Without load (default ${default})."`
}

// StartupResult is what Startup measured.
type StartupResult struct {
	Vehicles int       `json:"vehicles"`
	Binary   int64     `json:"binary_bytes"`
	Floor    []float64 `json:"floor_ms"`   // from the start until it listens
	Service  []float64 `json:"service_ms"` // from the start until it is ready
	Idle     float64   `json:"idle_seconds"`
	Bare     IdleUse   `json:"idle_floor"`
	Serving  IdleUse   `json:"idle_service"`
}

// IdleUse is what an idle process uses.
type IdleUse struct {
	Resident     int64   `json:"resident_bytes"`
	Proportional int64   `json:"proportional_bytes"`
	CPU          float64 `json:"cpu_seconds"`
}

const readyInterval = 2 * time.Millisecond

// Measure implements Experiment.
func (c *Startup) Measure(ctx context.Context, s Setup, r *Results) (err error) {
	r.Startup = &StartupResult{Vehicles: c.Vehicles, Idle: c.Idle.Seconds()}
	w, err := s.newWorld(ctx, c.Vehicles, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	program, err := os.Stat(w.Binary)
	if err != nil {
		return err
	}
	r.Startup.Binary = program.Size()
	for round := range s.Rounds {
		Say("start: round %d of %d", round+1, s.Rounds)
		begin := time.Now()
		bare, _, err := load.Serve(ctx, &StaticFloor{"{}"})
		if err != nil {
			return err
		}
		r.Startup.Floor = append(r.Startup.Floor, milliseconds(time.Since(begin)))
		n, took, err := w.startUntilReady(ctx)
		if err != nil {
			return errors.Join(err, bare.Close())
		}
		r.Startup.Service = append(r.Startup.Service, milliseconds(took))
		if round == s.Rounds-1 {
			err = c.idle(ctx, r.Startup, bare.PID(), n.PID())
		}
		if err = errors.Join(err, bare.Close(), n.Close()); err != nil {
			return err
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startUntilReady returns how long an instance took until it was ready. Its readiness is polled
// from the start, so its port is chosen here.
func (w *testWorld) startUntilReady(ctx context.Context, more ...string) (*world.Instance, time.Duration, error) {
	port, err := devstack.FreePort()
	if err != nil {
		return nil, 0, err
	}
	polling, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	internal := fmt.Sprintf("127.0.0.1:%d", port)
	ready := make(chan time.Time, 1)
	begin := time.Now()
	go func() {
		for !world.Ready(polling, "http://"+internal) && polling.Err() == nil {
			world.Pause(polling, readyInterval)
		}
		ready <- time.Now()
	}()
	n, err := w.StartInstance(ctx, world.InstanceConfig{Settings: slices.Concat(settings, []string{"MOTORPOOL_INTERNAL=" + internal}, more)})
	if err != nil {
		return nil, 0, err
	}
	n.Internal = "http://" + internal
	at := <-ready
	if err := polling.Err(); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("wait until the service is ready: %w", err), n.Close())
	}
	return n, at.Sub(begin), nil
}

// idle measures both processes without load.
func (c *Startup) idle(ctx context.Context, r *StartupResult, bare, serving int) error {
	world.Pause(ctx, restTime)
	used, err := meters{"floor": bare, "service": serving}.start()
	if err != nil {
		return err
	}
	world.Pause(ctx, c.Idle)
	after, err := used()
	for pid, of := range map[int]*IdleUse{bare: &r.Bare, serving: &r.Serving} {
		u, name := after["floor"], "floor"
		if pid == serving {
			u, name = after["service"], "service"
		}
		resident, failure := residentOf(pid)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, failure))
		}
		*of = IdleUse{Resident: resident, Proportional: u.Memory, CPU: u.CPU}
	}
	return err
}
