package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"text/tabwriter"
	"time"

	"motorpool/cmd/internal/service"
	"motorpool/simulator/devstack"
)

// startup measures how soon the service works, and what it takes when it has nothing to do. Its floor is a process with the service's HTTP
// library that has nothing to connect to.
type startup struct {
	stage
	Vehicles int           `default:"1000" placeholder:"N" help:"On record (default ${default})."`
	Rounds   int           `default:"5" placeholder:"N" help:"Starts of the floor and of the service, in turn (default ${default})."`
	Idle     time.Duration `default:"10s" placeholder:"DURATION" help:"With nothing to do (default ${default})."`
}

type startupResult struct {
	Machine  machine   `json:"machine"`
	Vehicles int       `json:"vehicles"`
	Binary   int64     `json:"binary_bytes"`
	Floor    []float64 `json:"floor_ms"`   // from the start until it says where it listens
	Service  []float64 `json:"service_ms"` // from the start until it is ready
	Idle     float64   `json:"idle_seconds"`
	Bare     idleUse   `json:"idle_floor"`
	Serving  idleUse   `json:"idle_service"`
}

// idleUse is what a process takes that has nothing to do.
type idleUse struct {
	Resident     int64   `json:"resident_bytes"`
	Proportional int64   `json:"proportional_bytes"`
	CPU          float64 `json:"cpu_seconds"`
}

// readyEvery is between two looks whether the service is ready.
const readyEvery = 2 * time.Millisecond

func (s startup) Run(ctx context.Context) error {
	result := startupResult{Machine: thisMachine(), Vehicles: s.Vehicles, Idle: s.Idle.Seconds()}
	err := s.measure(ctx, &result)
	return errors.Join(err, s.print(os.Stdout, result))
}

func (s startup) measure(ctx context.Context, result *startupResult) (err error) {
	w, err := s.newWorld(ctx, s.Vehicles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.tearDown()) }()
	program, err := os.Stat(w.Binary)
	if err != nil {
		return err
	}
	result.Binary = program.Size()
	if err := os.WriteFile(w.path("answer.json"), []byte("{}"), 0o600); err != nil {
		return err
	}
	for round := range s.Rounds {
		say("start: round %d of %d", round+1, s.Rounds)
		took, bare, err := w.startBare(ctx)
		if err != nil {
			return err
		}
		result.Floor = append(result.Floor, milliseconds(took))
		took, n, err := w.startService(ctx)
		if err != nil {
			return errors.Join(err, bare.stop())
		}
		result.Service = append(result.Service, milliseconds(took))
		if round == s.Rounds-1 {
			say("nothing to do for %v", s.Idle)
			result.Bare, result.Serving, err = s.idle(ctx, bare.pid(), n.PID())
		}
		if err = errors.Join(err, bare.stop(), n.Close()); err != nil {
			return err
		}
	}
	return result.sound()
}

// sound returns an error where nothing was measured.
func (r startupResult) sound() error {
	if len(r.Service) == 0 || r.Serving.Resident == 0 {
		return errors.New("the service was not seen to start, or not to idle")
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startBare returns how long it took until a process says where it listens.
func (w *world) startBare(ctx context.Context) (time.Duration, *attendant, error) {
	begin := time.Now()
	bare, _, err := attend(ctx, "answer", "--body", w.path("answer.json"))
	return time.Since(begin), bare, err
}

// startService returns how long it took until the service says that it is ready. Who asks does so from the beginning, so it must know
// beforehand where.
func (w *world) startService(ctx context.Context) (time.Duration, *service.Instance, error) {
	port, err := devstack.FreePort()
	if err != nil {
		return 0, nil, err
	}
	internal := fmt.Sprintf("127.0.0.1:%d", port)
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	ready := make(chan time.Time, 1)
	begin := time.Now()
	go func() {
		if askUntilReady(ctx, "http://"+internal+"/readyz") {
			ready <- time.Now()
		}
		close(ready)
	}()
	n, err := w.start(ctx, "MOTORPOOL_INTERNAL="+internal)
	if err != nil {
		cancel()
		<-ready
		return 0, nil, err
	}
	at, ok := <-ready
	if !ok {
		return 0, nil, errors.Join(fmt.Errorf("wait until the service is ready: %w", ctx.Err()), n.Close())
	}
	return at.Sub(begin), n, nil
}

// askUntilReady reports false where the context ended before.
func askUntilReady(ctx context.Context, url string) bool {
	for {
		if isReady(ctx, url) {
			return true
		}
		select {
		case <-time.After(readyEvery):
		case <-ctx.Done():
			return false
		}
	}
}

func isReady(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := service.Direct.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// idle leaves two processes alone for a while.
func (s startup) idle(ctx context.Context, bare, serving int) (b, v idleUse, err error) {
	m := meters{"bare": bare, "service": serving}
	// What is made at the start is not what idling costs.
	if err := rest(ctx); err != nil {
		return b, v, err
	}
	before, err := m.read()
	if err != nil {
		return b, v, err
	}
	select {
	case <-time.After(s.Idle):
	case <-ctx.Done():
		return b, v, ctx.Err()
	}
	after, err := m.read()
	if err != nil {
		return b, v, err
	}
	idle := used(before, after)
	for name, of := range map[string]*idleUse{"bare": &b, "service": &v} {
		of.CPU, of.Proportional = idle[name].CPU, idle[name].Memory
		if of.Resident, err = resident(m[name]); err != nil {
			return b, v, err
		}
	}
	return b, v, nil
}

func (r startupResult) tables(to *tabwriter.Writer) {
	r.Machine.line(to)
	fmt.Fprintf(to, "%d vehicles on record, the schema in place; a program of %.1f MB\n\n", r.Vehicles, float64(r.Binary)/1e6)
	fmt.Fprintln(to, "start\tfloor ms\tservice ms\t")
	for i := range r.Service {
		fmt.Fprintf(to, "%d\t%.1f\t%.1f\t\n", i+1, r.Floor[i], r.Service[i])
	}
	fmt.Fprintln(to, "\nidle\tMB resident\tMB proportional\tms CPU a second\t")
	for _, of := range []struct {
		name string
		use  idleUse
	}{{"floor", r.Bare}, {"service", r.Serving}} {
		fmt.Fprintf(to, "%s\t%.1f\t%.1f\t%.2f\t\n", of.name, float64(of.use.Resident)/1e6, float64(of.use.Proportional)/1e6, of.use.CPU*1000/r.Idle)
	}
	fmt.Fprintf(to, "\nready after %s ms, floor %s ms, ratio %s; idle over %.0f s\n", spreadOf(r.Service), spreadOf(r.Floor),
		spreadOf(pairs(r.Service, r.Floor, func(service, floor float64) float64 { return service / floor })), r.Idle)
}
