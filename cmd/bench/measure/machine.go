package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Machine is where and when a run was made: only runs on the same machine are comparable.
type Machine struct {
	At       time.Time `json:"at"`
	Cores    int       `json:"cores"`
	CPU      string    `json:"cpu"`
	Go       string    `json:"go"`
	Load     float64   `json:"load"` // of the minute before
	Postgres string    `json:"postgres"`

	// Linux schedules each session, so each connection of Postgres, as a group.
	SessionGroups bool `json:"session_groups"`
}

// ThisMachine describes this machine.
func ThisMachine() Machine {
	m := Machine{At: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version()}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	if load, err := proc.LoadAvg(); err == nil {
		m.Load = load.Load1
	}
	m.SessionGroups = sessionGroups(proc)
	return m
}

// sessionGroups reports whether autogroups are on (sched(7)) and this process is in no cgroup that
// has a share of the processor, so that they apply.
func sessionGroups(proc procfs.FS) bool {
	enabled, err := proc.SysctlInts("kernel.sched_autogroup_enabled")
	if err != nil || !slices.Contains(enabled, 1) {
		return false
	}
	self, err := proc.Self()
	if err != nil {
		return false
	}
	groups, err := self.Cgroups()
	if err != nil {
		return false
	}
	for _, g := range groups {
		if slices.Contains(g.Controllers, "cpu") { // version 1
			return g.Path == "/"
		}
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", g.Path, "cpu.weight")); g.HierarchyID == 0 && err == nil {
			return false
		}
	}
	return true
}

// openFiles returns how many files a process may open, and allows as many to the processes that
// this one starts: Go raises the limit for its own process only.
func openFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("set the limit of open files: %w", err)
	}
	return int(min(limit.Cur, 1<<20)), nil
}
