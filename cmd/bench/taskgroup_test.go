package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"
)

// aLinux is what a Linux tells of scheduling: files of /proc, and of the cgroups that are mounted.
type aLinux struct {
	autogroup string // empty: built without
	cgroup    string // of this process
	mount     string // its line of mountinfo, after the place
	files     map[string]string
}

const (
	firstVersion  = "rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
	secondVersion = "rw,relatime shared:10 - cgroup2 cgroup2 rw"
)

func (l aLinux) make(t *testing.T) (proc procfs.FS, mount string) {
	t.Helper()
	root, mount, number := t.TempDir(), t.TempDir(), strconv.Itoa(os.Getpid())
	all := map[string]string{filepath.Join(root, number, "cgroup"): l.cgroup, filepath.Join(root, number, "mountinfo"): ""}
	if l.mount != "" {
		all[filepath.Join(root, number, "mountinfo")] = "30 25 0:25 / " + mount + " " + l.mount + "\n"
	}
	if l.autogroup != "" {
		all[filepath.Join(root, "sys/kernel/sched_autogroup_enabled")] = l.autogroup
	}
	for path, content := range l.files {
		all[filepath.Join(mount, path)] = content
	}
	for path, content := range all {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(number, filepath.Join(root, "self")); err != nil {
		t.Fatal(err)
	}
	proc, err := procfs.NewFS(root)
	if err != nil {
		t.Fatal(err)
	}
	return proc, mount
}

func TestSessionsAreGroupsWhereNoCgroupSharesTheProcessorOut(t *testing.T) {
	const with, without = "cpuset cpu io memory\n", "memory pids\n"
	for name, c := range map[string]struct {
		linux aLinux
		want  bool
	}{
		"version 1":                         {aLinux{"1\n", "4:memory:/a\n1:cpu,cpuacct:/\n0::/b\n", firstVersion, nil}, true},
		"version 1, a container":            {aLinux{"1\n", "1:cpu,cpuacct:/docker/1\n0::/\n", firstVersion, nil}, false},
		"turned off":                        {aLinux{"0\n", "0::/\n", secondVersion, nil}, false},
		"built without":                     {aLinux{"", "0::/\n", secondVersion, nil}, false},
		"the topmost group":                 {aLinux{"1\n", "0::/\n", secondVersion, map[string]string{"cgroup.controllers": with}}, true},
		"a service that has a share":        {aLinux{"1\n", "0::/system.slice/a.service\n", secondVersion, map[string]string{"system.slice/cgroup.controllers": with}}, false},
		"a service, of which none has":      {aLinux{"1\n", "0::/system.slice/a.service\n", secondVersion, map[string]string{"system.slice/cgroup.controllers": without}}, true},
		"a container that has a share":      {aLinux{"1\n", "0::/\n", secondVersion, map[string]string{"cgroup.type": "domain\n", "cgroup.controllers": with}}, false},
		"a container, of which none has":    {aLinux{"1\n", "0::/\n", secondVersion, map[string]string{"cgroup.type": "domain\n", "cgroup.controllers": without}}, true},
		"no cgroups, so nobody knows of it": {aLinux{"1\n", "", "", nil}, false},
	} {
		proc, _ := c.linux.make(t)
		if got := sessionsAreGroups(proc); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestATaskGroupHoldsThisProcessUntilItLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		linux aLinux
		back  string // where this process was before
	}{
		"version 1": {aLinux{"1\n", "1:cpu,cpuacct:/\n", firstVersion, nil}, "."},
		"version 2": {aLinux{"1\n", "0::/user.slice\n", secondVersion, map[string]string{
			"cgroup.subtree_control": "cpu memory\n", "user.slice/cgroup.procs": "",
		}}, "user.slice"},
	} {
		proc, mount := c.linux.make(t)
		group, err := joinTaskGroup(proc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := read(t, filepath.Join(group.path, "cgroup.procs")); got != strconv.Itoa(os.Getpid()) || filepath.Dir(group.path) != mount {
			t.Errorf("%s: %q in %s", name, got, group.path)
		}
		// Linux removes a group with its files; here they are files.
		if err := os.Remove(filepath.Join(group.path, "cgroup.procs")); err != nil {
			t.Fatal(err)
		}
		if err := group.leave(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := read(t, filepath.Join(mount, c.back, "cgroup.procs")); got != strconv.Itoa(os.Getpid()) {
			t.Errorf("%s: left to %q", name, got)
		}
	}
}

func TestWhatAKilledRunLeftIsRemoved(t *testing.T) {
	proc, mount := aLinux{"1\n", "1:cpu,cpuacct:/\n", firstVersion, nil}.make(t)
	stays := map[string]bool{groupPrefix + "999999999": false, groupPrefix + strconv.Itoa(os.Getpid()): true, groupPrefix + "x": true, "x": true}
	for group := range stays {
		if err := os.Mkdir(filepath.Join(mount, group), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweep(proc, mount)
	for group, want := range stays {
		if _, err := os.Stat(filepath.Join(mount, group)); (err == nil) != want {
			t.Errorf("%s: %v", group, err)
		}
	}
}

func TestNoTaskGroupWhereItWouldHaveNoShare(t *testing.T) {
	for name, linux := range map[string]aLinux{
		"nothing mounted": {"1\n", "0::/\n", "", nil},
		"other mounts":    {"1\n", "0::/\n", "rw - proc proc rw", nil},
		"not shared out":  {"1\n", "0::/\n", secondVersion, map[string]string{"cgroup.subtree_control": "memory pids\n"}},
	} {
		proc, _ := linux.make(t)
		if group, err := joinTaskGroup(proc); err == nil {
			t.Errorf("%s: %+v", name, group)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
