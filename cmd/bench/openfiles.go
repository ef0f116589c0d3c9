package main

import (
	"fmt"
	"syscall"
)

// sparedFiles are what the service holds open beside its callers' connections: what it reserves for its servers and listeners, and room.
const sparedFiles = 1000

// mayOpen lets this process, and those that it starts, have so many files open, or as many as it is allowed to, and returns how
// many that are.
func mayOpen(wanted uint64) (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	if limit.Cur >= wanted {
		return limit.Cur, nil
	}
	// Beyond the hard limit is a privilege.
	if wanted > limit.Max && syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: wanted, Max: wanted}) == nil {
		return wanted, nil
	}
	limit.Cur = min(wanted, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("raise the limit of open files: %w", err)
	}
	return limit.Cur, nil
}
