package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// disk is a small file system in memory, which can be filled without harm to other programs.
type disk struct{ dir string }

// diskSize is several times what a round writes.
const diskSize = "1g"

// mountDisk needs the right to mount, which root has outside of containers.
func mountDisk(dir string) (*disk, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may mount a small disk")
	}
	said, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+diskSize+",mode=0711", "motorpool-chaos", dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("mount a small disk: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return &disk{dir}, nil
}

func (d *disk) unmount() error {
	if said, err := exec.Command("umount", d.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("unmount the small disk: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return nil
}

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill uses all free space.
func (d *disk) fill() error {
	file, err := os.Create(d.filler())
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	defer file.Close()
	// Smaller and smaller pieces, down to a byte.
	for size := 1 << 20; size > 0; {
		if n, err := file.Write(make([]byte, size)); err != nil || n < size {
			size /= 64
		}
	}
	return nil
}

func (d *disk) empty() error {
	if err := os.Remove(d.filler()); err != nil {
		return fmt.Errorf("empty the disk: %w", err)
	}
	return nil
}
