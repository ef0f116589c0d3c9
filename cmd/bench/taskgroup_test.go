package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"
)

// aLinux is /proc as far as it tells of scheduling, and a folder for each {mount} in it.
func aLinux(t *testing.T, autogroup, cgroup, mounts string) (proc procfs.FS, mount string) {
	t.Helper()
	root, mount := t.TempDir(), t.TempDir()
	number := strconv.Itoa(os.Getpid())
	process := filepath.Join(root, number)
	for _, dir := range []string{process, filepath.Join(root, "sys/kernel")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(number, filepath.Join(root, "self")); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{filepath.Join(process, "cgroup"): cgroup, filepath.Join(process, "mountinfo"): os.Expand(mounts, func(string) string { return mount })}
	if autogroup != "" {
		files[filepath.Join(root, "sys/kernel/sched_autogroup_enabled")] = autogroup
	}
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	proc, err := procfs.NewFS(root)
	if err != nil {
		t.Fatal(err)
	}
	return proc, mount
}

const (
	firstVersion  = "30 25 0:25 / ${mount} rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	secondVersion = "31 25 0:26 / ${mount} rw,relatime shared:10 - cgroup2 cgroup2 rw\n"
)

func TestSessionsAreGroupsWhereNoCgroupHoldsThem(t *testing.T) {
	for _, c := range []struct {
		name, autogroup, cgroup string
		want                    bool
	}{
		{"a desktop", "1\n", "0::/\n", true},
		{"version 1", "1\n", "4:memory:/a\n1:cpu,cpuacct:/\n0::/b\n", true},
		{"turned off", "0\n", "0::/\n", false},
		{"built without", "", "0::/\n", false},
		{"a container", "1\n", "1:cpu:/docker/1\n0::/\n", false},
		{"a service", "1\n", "0::/system.slice/postgresql.service\n", false},
		{"no cgroups", "1\n", "", false},
	} {
		proc, _ := aLinux(t, c.autogroup, c.cgroup, "")
		if got := sessionsAreGroups(proc); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestATaskGroupHoldsThisProcessUntilItLeaves(t *testing.T) {
	for name, mounts := range map[string]string{"version 1": firstVersion, "version 2": secondVersion} {
		proc, mount := aLinux(t, "1\n", "0::/\n", mounts)
		killed := filepath.Join(mount, groupPrefix+"1")
		if err := os.Mkdir(killed, 0o755); err != nil {
			t.Fatal(err)
		}
		group, err := joinTaskGroup(proc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := read(t, filepath.Join(group.path, "cgroup.procs")); got != strconv.Itoa(os.Getpid()) || filepath.Dir(group.path) != mount {
			t.Errorf("%s: %q in %s", name, got, group.path)
		}
		if _, err := os.Stat(killed); !os.IsNotExist(err) {
			t.Errorf("%s: what a killed run left: %v", name, err)
		}
		if name == "version 2" && read(t, filepath.Join(mount, "cgroup.subtree_control")) != "+cpu" {
			t.Error("the group does not count for the processor")
		}
		// Linux removes a group with its files; here they are files.
		if err := os.Remove(filepath.Join(group.path, "cgroup.procs")); err != nil {
			t.Fatal(err)
		}
		if err := group.leave(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := read(t, filepath.Join(mount, "cgroup.procs")); got != strconv.Itoa(os.Getpid()) {
			t.Errorf("%s: left to %q", name, got)
		}
	}
}

func TestNoTaskGroupWhereThereAreNoCgroups(t *testing.T) {
	proc, _ := aLinux(t, "1\n", "0::/\n", "32 25 0:27 / /proc rw - proc proc rw\n")
	if group, err := joinTaskGroup(proc); err == nil {
		t.Errorf("%+v", group)
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
