package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// taskGroup is a cgroup for one run of this program, and all that it starts.
//
// Without one, Linux schedules each session as a group of its own (autogroup, sched(7)), and each connection of Postgres is a
// session: beside a busy process one that could run may wait for 60 ms and more. Tasks that a cgroup shares the processor out
// to are not grouped so, like those of a container.
type taskGroup struct {
	parent string // where its processes were before
	path   string
}

const groupPrefix = "motorpool-bench-"

// sessionsAreGroups tells whether this process, and those that it starts, would be scheduled by session.
func sessionsAreGroups(proc procfs.FS) bool {
	enabled, err := proc.SysctlInts("kernel.sched_autogroup_enabled")
	if err != nil || !slices.Contains(enabled, 1) {
		return false // also where Linux was built without it
	}
	h, err := processorHierarchy(proc)
	return err == nil && !h.shares()
}

// joinTaskGroup makes a group for this process, and for all that it starts from now on.
func joinTaskGroup(proc procfs.FS) (*taskGroup, error) {
	h, err := processorHierarchy(proc)
	if err != nil {
		return nil, err
	}
	if !h.mayShare() {
		return nil, fmt.Errorf("%s does not list the cpu controller", filepath.Join(h.mount, subtreeControl))
	}
	g := &taskGroup{parent: h.current(), path: filepath.Join(h.mount, groupPrefix+strconv.Itoa(os.Getpid()))}
	sweep(proc, h.mount)
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return nil, err
	}
	if err := enter(g.path); err != nil {
		return nil, errors.Join(err, os.Remove(g.path))
	}
	return g, nil
}

func enter(group string) error {
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644)
}

// sweep removes what killed runs left.
func sweep(proc procfs.FS, mount string) {
	groups, _ := filepath.Glob(filepath.Join(mount, groupPrefix+"*")) // the pattern is a good one
	for _, path := range groups {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), groupPrefix))
		if err != nil {
			continue // not one of ours
		}
		if _, err := proc.Proc(pid); errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(path) // Linux keeps a group that has processes
		}
	}
}

// leave puts this process back. All that it started has to have ended.
func (g *taskGroup) leave() error {
	if err := enter(g.parent); err != nil {
		return fmt.Errorf("leave %s: %w", g.path, err)
	}
	return os.Remove(g.path)
}

// inTaskGroup runs a measurement where sessions are no groups, if this process may.
func inTaskGroup(measure func() error) error {
	proc, err := procfs.NewDefaultFS()
	if err != nil || !sessionsAreGroups(proc) {
		return measure()
	}
	group, err := joinTaskGroup(proc)
	if err != nil {
		say("Linux schedules each connection of Postgres as a group of its own here, which makes some answers late: "+
			"sysctl kernel.sched_autogroup_enabled=0 avoids that (a cgroup would too, but: %v)", err)
		return measure()
	}
	defer func() {
		if err := group.leave(); err != nil {
			say("%v", err)
		}
	}()
	return measure()
}
