//go:build !linux

package devstack

import "syscall"

// dieWithParent does nothing: only Linux has such a signal. Elsewhere a child outlives a parent
// that was killed; the next StartPostgres on the same folder ends it.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
