package main

import (
	"fmt"
	"syscall"
)

// descriptorsBeside are open in a process beside its connections to vehicles.
const descriptorsBeside = 500

// allowConnections lets the servers and helpers that this process starts hold as many connections as are wanted, or as may be, and
// returns how many fit.
func allowConnections(wanted int) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	need := uint64(wanted + descriptorsBeside)
	// What is set here is handed on; what the Go runtime has raised for itself is not. Beyond the hard limit only root gets.
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: need, Max: max(limit.Max, need)}) == nil {
		return wanted, nil
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit.Max, Max: limit.Max}); err != nil {
		return 0, fmt.Errorf("raise the limit of open files: %w", err)
	}
	return max(0, int(limit.Max)-descriptorsBeside), nil
}
