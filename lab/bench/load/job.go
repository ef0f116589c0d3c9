// Package load generates load in separate processes, so that their CPU time does not count as the
// service's: HTTP requests, the units of vehicles, telemetry reports, subscribers of events.
//
// A Job is what one process does. Do and Serve run this program once more, with the job's settings
// as JSON; there, Run does the job and prints its result as JSON.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"syscall"
	"time"
)

// Job is the work of one process. Its exported fields are its settings.
type Job interface {
	// Do works until it is done, or until the context ends, and returns the result. A job that
	// serves calls ready once, with its address, when it listens.
	Do(ctx context.Context, ready func(address string)) (result any, err error)
}

// Command is the command of this program that runs a job: its arguments are the job's name and
// settings.
const Command = "job"

func nameOf(job Job) string { return reflect.Indirect(reflect.ValueOf(job)).Type().Name() }

// Run runs the named one of some jobs in this process. The job's context ends with the standard
// input, which Finish closes, as does the end of the process that started this one.
func Run(ctx context.Context, name, settings string, jobs ...Job) error {
	n := slices.IndexFunc(jobs, func(job Job) bool { return nameOf(job) == name })
	if n < 0 {
		return fmt.Errorf("unknown job %q", name)
	}
	if err := json.Unmarshal([]byte(settings), jobs[n]); err != nil {
		return fmt.Errorf("settings of %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // blocks until the input ends
		cancel()
	}()
	out := json.NewEncoder(os.Stdout)
	// The reader may have ended.
	result, err := jobs[n].Do(ctx, func(address string) { _ = out.Encode(address) })
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return out.Encode(result)
}

// Process is a running job.
type Process struct {
	cmd *exec.Cmd
	in  io.Closer
	out *json.Decoder
}

// start starts a job in a separate process, which ends with the context, and reads the first that
// it prints.
func start(ctx context.Context, job Job, first any) (*Process, error) {
	settings, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, Command, nameOf(job), string(settings))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd, in, json.NewDecoder(out)}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.out.Decode(first); err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(job), errors.Join(err, cmd.Wait()))
	}
	return p, nil
}

// Serve starts a job that serves, and returns its address once it listens.
func Serve(ctx context.Context, job Job) (p *Process, address string, err error) {
	p, err = start(ctx, job, &address)
	return p, address, err
}

// Do runs a job to its end, reads its result, and returns the CPU time that it took.
func Do(ctx context.Context, job Job, result any) (cpu time.Duration, err error) {
	p, err := start(ctx, job, result)
	if err != nil {
		return 0, err
	}
	err = p.cmd.Wait()
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), err
}

// Finish ends a job that runs until then, and reads its result.
func (p *Process) Finish(result any) error {
	return errors.Join(p.in.Close(), p.out.Decode(result), p.cmd.Wait())
}

// Close ends a job without its result. After Finish it does nothing.
func (p *Process) Close() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	return p.Finish(new(any))
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ServeHTTP serves on a free port until the context ends.
func ServeHTTP(ctx context.Context, handler http.Handler, ready func(address string)) {
	server := httptest.NewServer(handler)
	defer server.Close()
	ready(server.URL)
	<-ctx.Done()
	server.CloseClientConnections()
}
