package mosquitto

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Process is a running Mosquitto, on this machine.
type Process struct{ pid int }

// FindProcess returns the Mosquitto that has written a pid file (its setting pid_file). If /proc
// shows that another program has the process id now, it returns an error: the signal would end that
// program.
func FindProcess(pidFile string) (Process, error) {
	text, err := os.ReadFile(filepath.Clean(pidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, fmt.Errorf("%w (does mosquitto.conf set pid_file to it, and does Mosquitto run?)", err)
	}
	if err != nil {
		return Process{}, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return Process{}, fmt.Errorf("%s: want the number of a process, have %q", pidFile, strings.TrimSpace(string(text)))
	}
	if err := syscall.Kill(pid, 0); err != nil {
		return Process{}, fmt.Errorf("%s: process %d: %w (does Mosquitto run, and may this user signal it?)", pidFile, pid, err)
	}
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.TrimSpace(string(name)) != "mosquitto" {
		return Process{}, fmt.Errorf(
			"%s: process %d is %s, not mosquitto: does Mosquitto run?", pidFile, pid, strings.TrimSpace(string(name)),
		)
	}
	return Process{pid}, nil
}

// Reload makes the process read its files again. It returns before that is done. It fails where the
// process cannot be signalled.
func (p Process) Reload() error {
	if err := syscall.Kill(p.pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("signal mosquitto (process %d): %w", p.pid, err)
	}
	return nil
}
