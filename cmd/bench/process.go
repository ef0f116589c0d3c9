package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// usage is what a process, with its children, has used.
type usage struct {
	CPU    float64 `json:"cpu_seconds"`
	Memory int64   `json:"memory_bytes"` // at the end, proportional: shared pages count once
}

// usageOf reads what a server and the processes that it forked have used so far.
func usageOf(pid int) (usage, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return usage{}, fmt.Errorf("read usage: %w", err)
	}
	var sum usage
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || p.PID != pid && stat.PPID != pid {
			continue // another's, or it ended meanwhile
		}
		sum.CPU += stat.CPUTime()
		if p.PID == pid {
			const ticksASecond = 100 // USER_HZ, of every Linux
			sum.CPU += float64(stat.CUTime+stat.CSTime) / ticksASecond
		}
		if maps, err := p.ProcSMapsRollup(); err == nil {
			sum.Memory += int64(maps.Pss)
		}
	}
	return sum, nil
}

// meters reads the usage of processes by their names.
type meters map[string]int

func (m meters) read() (map[string]usage, error) {
	all := map[string]usage{}
	for name, pid := range m {
		used, err := usageOf(pid)
		if err != nil {
			return nil, err
		}
		all[name] = used
	}
	return all, nil
}

// used returns what was used between two readings.
func used(before, after map[string]usage) map[string]usage {
	between := map[string]usage{}
	for name, u := range after {
		between[name] = usage{CPU: u.CPU - before[name].CPU, Memory: u.Memory}
	}
	return between
}

// helper is this program once more, at work for a measurement.
func helper(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// work runs a helper to its end, and reads the result that it prints.
func work(ctx context.Context, result any, args ...string) (usage, error) {
	cmd, err := helper(ctx, args...)
	if err != nil {
		return usage{}, err
	}
	text, err := cmd.Output()
	if err != nil {
		return usage{}, fmt.Errorf("%s: %w", args[0], err)
	}
	if err := json.Unmarshal(text, result); err != nil {
		return usage{}, fmt.Errorf("%s: %w", args[0], err)
	}
	return usageAtEnd(cmd.ProcessState), nil
}

// usageAtEnd is what a process that has ended had used; its memory at its largest.
func usageAtEnd(state *os.ProcessState) usage {
	u := usage{CPU: (state.UserTime() + state.SystemTime()).Seconds()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.Memory = r.Maxrss << 10
	}
	return u
}

// attendant is a helper that serves until it is told to end.
type attendant struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// attend starts a helper, and returns the line by which it says that it serves.
func attend(ctx context.Context, args ...string) (*attendant, string, error) {
	cmd, err := helper(ctx, args...)
	if err != nil {
		return nil, "", err
	}
	a := &attendant{cmd: cmd}
	if a.in, err = cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	a.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	line, err := a.out.ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", args[0], errors.Join(err, a.stop()))
	}
	return a, strings.TrimSpace(line), nil
}

func (a *attendant) pid() int { return a.cmd.Process.Pid }

// stop ends it.
func (a *attendant) stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	return a.cmd.Wait()
}

// finish gives it its last line, reads the result that it prints then, and ends it.
func (a *attendant) finish(last string, result any) (usage, error) {
	if _, err := fmt.Fprintln(a.in, last); err != nil {
		return usage{}, errors.Join(err, a.stop())
	}
	err := json.NewDecoder(a.out).Decode(result)
	err = errors.Join(err, a.stop())
	return usageAtEnd(a.cmd.ProcessState), err
}

// attended returns a context that ends with whoever has started this helper: its input ends then.
func attended(ctx context.Context) context.Context {
	ctx, abandoned := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it
		abandoned()
	}()
	return ctx
}
