package measure

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"motorpool/simulator/world"
)

// Usage is what a process and its children have used.
type Usage struct {
	CPU    float64 `json:"cpu_seconds"`
	Memory int64   `json:"memory_bytes"` // at the end, proportional: shared pages count once
}

func usageOf(pid int) (Usage, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return Usage{}, fmt.Errorf("read usage: %w", err)
	}
	var sum Usage
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || p.PID != pid && stat.PPID != pid {
			continue // another process, or it has ended
		}
		sum.CPU += stat.CPUTime()
		if p.PID == pid {
			const ticksPerSecond = 100 // USER_HZ of every Linux
			sum.CPU += float64(stat.CUTime+stat.CSTime) / ticksPerSecond
		}
		if maps, err := p.ProcSMapsRollup(); err == nil {
			sum.Memory += int64(maps.Pss)
		}
	}
	return sum, nil
}

// usageAtEnd is what a process that has ended had used; its memory is the largest resident size.
func usageAtEnd(state *os.ProcessState) Usage {
	u := Usage{CPU: (state.UserTime() + state.SystemTime()).Seconds()}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.Memory = r.Maxrss << 10
	}
	return u
}

// meters are processes by name.
type meters map[string]int

// start reads the usage of the processes, and returns a function that returns what they have used
// since.
func (m meters) start() (used func() (map[string]Usage, error), err error) {
	before, err := m.read()
	return func() (map[string]Usage, error) {
		after, err := m.read()
		for name, u := range after {
			after[name] = Usage{CPU: u.CPU - before[name].CPU, Memory: u.Memory}
		}
		return after, err
	}, err
}

func (m meters) read() (map[string]Usage, error) {
	all := map[string]Usage{}
	for name, pid := range m {
		u, err := usageOf(pid)
		if err != nil {
			return nil, err
		}
		all[name] = u
	}
	return all, nil
}

// residentOf returns the resident memory of a process, in bytes.
func residentOf(pid int) (int64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	return int64(status.VmRSS), nil
}

const residentInterval = 50 * time.Millisecond

// watchResident reads the resident memory of a process until stop is called, which returns the
// first, the largest and the last value.
func watchResident(ctx context.Context, pid int) (stop func() (first, most, last int64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	first, err := residentOf(pid)
	most, last := first, first
	go func() {
		defer close(done)
		for ctx.Err() == nil && err == nil {
			last, err = residentOf(pid)
			most = max(most, last)
			world.Pause(ctx, residentInterval)
		}
	}()
	return func() (int64, int64, int64, error) {
		cancel()
		<-done
		return first, most, last, err
	}
}
