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
	"net"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"syscall"
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
	for _, job := range jobs {
		if nameOf(job) == name {
			if err := json.Unmarshal([]byte(settings), job); err != nil {
				return fmt.Errorf("settings of %s: %w", name, err)
			}
			return run(ctx, job)
		}
	}
	return fmt.Errorf("unknown job %q", name)
}

func run(ctx context.Context, job Job) error {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // blocks until the input ends
		cancel()
	}()
	out := json.NewEncoder(os.Stdout)
	// The reader may have ended.
	result, err := job.Do(ctx, func(address string) { _ = out.Encode(address) })
	if err != nil {
		return fmt.Errorf("%s: %w", nameOf(job), err)
	}
	return out.Encode(result)
}

// Process is a running job.
type Process struct {
	name string
	cmd  *exec.Cmd
	in   io.Closer
	out  *json.Decoder
}

// start starts a job in a separate process, which ends with the context.
func start(ctx context.Context, job Job) (*Process, error) {
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
	return &Process{nameOf(job), cmd, in, json.NewDecoder(out)}, cmd.Start()
}

// Serve starts a job that serves, and returns its address once it listens.
func Serve(ctx context.Context, job Job) (p *Process, address string, err error) {
	if p, err = start(ctx, job); err != nil {
		return nil, "", err
	}
	if err := p.out.Decode(&address); err != nil {
		return nil, "", fmt.Errorf("%s: %w", p.name, errors.Join(err, p.Close()))
	}
	return p, address, nil
}

// Do runs a job to its end, and reads its result.
func Do(ctx context.Context, job Job, result any) (*os.ProcessState, error) {
	p, err := start(ctx, job)
	if err != nil {
		return nil, err
	}
	if err = p.out.Decode(result); err != nil {
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	err = errors.Join(err, p.cmd.Wait())
	return p.cmd.ProcessState, err
}

// Finish ends a job that runs until then, and reads its result.
func (p *Process) Finish(result any) (*os.ProcessState, error) {
	err := errors.Join(p.in.Close(), p.out.Decode(result), p.cmd.Wait())
	if err != nil {
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	return p.cmd.ProcessState, err
}

// Close ends a job without its result. After Finish it does nothing.
func (p *Process) Close() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	var result json.RawMessage
	_ = p.in.Close()
	_ = p.out.Decode(&result) // a job that has failed prints none
	return p.cmd.Wait()
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ServeHTTP serves on a free port until the context ends.
func ServeHTTP(ctx context.Context, handler http.Handler, ready func(address string)) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	ready("http://" + listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
