package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// hierarchy is the cgroups that share the processor out, and where this process is among them.
type hierarchy struct {
	version int    // 1, or 2
	mount   string // the topmost group that is to be seen
	path    string // of this process's group, below that
}

// Files of a cgroup of version 2.
const (
	subtreeControl = "cgroup.subtree_control" // what is shared out to the groups below
	controllers    = "cgroup.controllers"     // what is shared out to this group
	groupType      = "cgroup.type"            // the topmost of the machine has none
)

// processor is the name of its controller.
const processor = "cpu"

func processorHierarchy(proc procfs.FS) (h hierarchy, err error) {
	self, err := proc.Self()
	if err != nil {
		return h, err
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return h, err
	}
	groups, err := self.Cgroups()
	if err != nil {
		return h, err
	}
	for _, kind := range []struct {
		version int
		mounted func(*procfs.MountInfo) bool
		has     func(procfs.Cgroup) bool
	}{
		{1, func(m *procfs.MountInfo) bool {
			_, shared := m.SuperOptions[processor]
			return shared && m.FSType == "cgroup"
		}, func(g procfs.Cgroup) bool { return slices.Contains(g.Controllers, processor) }},
		{2, func(m *procfs.MountInfo) bool { return m.FSType == "cgroup2" }, func(g procfs.Cgroup) bool { return g.HierarchyID == 0 }},
	} {
		m, g := slices.IndexFunc(mounts, kind.mounted), slices.IndexFunc(groups, kind.has)
		if m >= 0 && g >= 0 {
			return hierarchy{kind.version, mounts[m].MountPoint, groups[g].Path}, nil
		}
	}
	return h, errors.New("no cgroups of the processor are mounted")
}

func (h hierarchy) current() string { return filepath.Join(h.mount, h.path) }

// shares tells whether a cgroup below the machine's topmost says what this process has of the processor.
func (h hierarchy) shares() bool {
	if h.version == 1 {
		return h.path != "/"
	}
	// What is shared out to a group is shared out to all above it, so the topmost tells, which in a container is the mount.
	topmost := h.mount
	if _, err := os.Stat(filepath.Join(topmost, groupType)); errors.Is(err, os.ErrNotExist) {
		first, _, _ := strings.Cut(strings.TrimPrefix(h.path, "/"), "/")
		if first == "" {
			return false
		}
		topmost = filepath.Join(topmost, first)
	}
	return lists(filepath.Join(topmost, controllers))
}

// mayShare tells whether a new group below the mount would have a share. It is not for a measurement to change that.
func (h hierarchy) mayShare() bool {
	return h.version == 1 || lists(filepath.Join(h.mount, subtreeControl))
}

// lists tells whether a file of controllers has that of the processor.
func lists(path string) bool {
	content, err := os.ReadFile(path)
	return err == nil && slices.Contains(strings.Fields(string(content)), processor)
}
