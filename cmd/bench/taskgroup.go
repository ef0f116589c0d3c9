package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// A desktop's Linux schedules each session as a group of its own (autogroup, sched(7)), and each connection of Postgres is a
// session. In a crowd of such groups a connection that could run may wait for 60 ms and more beside one busy process. The
// tasks of a cgroup are not grouped so: those of a container, and of a service for which systemd counts the processor. So
// are those of a measurement.

// taskGroup is a cgroup of the processor for one run of this program, and all that it starts.
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
	group, err := processorGroup(proc)
	return err == nil && group.Path == "/"
}

// processorGroup is the cgroup that says which share of the processors this process has.
func processorGroup(proc procfs.FS) (procfs.Cgroup, error) {
	self, err := proc.Self()
	if err != nil {
		return procfs.Cgroup{}, err
	}
	groups, err := self.Cgroups()
	if err != nil {
		return procfs.Cgroup{}, err
	}
	for _, controls := range []func(procfs.Cgroup) bool{
		func(g procfs.Cgroup) bool { return slices.Contains(g.Controllers, "cpu") }, // version 1
		func(g procfs.Cgroup) bool { return g.HierarchyID == 0 },                    // version 2
	} {
		if at := slices.IndexFunc(groups, controls); at >= 0 {
			return groups[at], nil
		}
	}
	return procfs.Cgroup{}, errors.New("this Linux has no cgroups")
}

// processorMount is where the cgroups of processors are, and of which version they are.
func processorMount(proc procfs.FS) (path string, version int, err error) {
	self, err := proc.Self()
	if err != nil {
		return "", 0, err
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return "", 0, err
	}
	for _, m := range mounts {
		if _, cpu := m.SuperOptions["cpu"]; cpu && m.FSType == "cgroup" {
			return m.MountPoint, 1, nil
		}
	}
	for _, m := range mounts {
		if m.FSType == "cgroup2" {
			return m.MountPoint, 2, nil
		}
	}
	return "", 0, errors.New("no cgroups of processors are mounted")
}

// joinTaskGroup makes a group for this process, and for all that it starts from now on.
func joinTaskGroup(proc procfs.FS) (*taskGroup, error) {
	mount, version, err := processorMount(proc)
	if err != nil {
		return nil, err
	}
	if version == 2 {
		if err := os.WriteFile(filepath.Join(mount, "cgroup.subtree_control"), []byte("+cpu"), 0); err != nil {
			return nil, err
		}
	}
	g := &taskGroup{parent: mount, path: filepath.Join(mount, groupPrefix+strconv.Itoa(os.Getpid()))}
	g.sweep()
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

// sweep removes what killed runs left. Linux keeps a group that has processes.
func (g *taskGroup) sweep() {
	old, _ := filepath.Glob(filepath.Join(g.parent, groupPrefix+"*")) // the pattern is a good one
	for _, path := range old {
		_ = os.Remove(path)
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
		say("Linux may schedule each connection of Postgres as a group of its own here, which makes some answers late: "+
			"run this as root, or after sysctl kernel.sched_autogroup_enabled=0 (%v)", err)
		return measure()
	}
	defer func() {
		if err := group.leave(); err != nil {
			say("%v", err)
		}
	}()
	return measure()
}
