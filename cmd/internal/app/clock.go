//go:build !clockfault

package app

import "time"

// now is this instance's clock: it dates commands, requests and what comes from vehicles. Only a
// program that is built for the fault harness has another one (clock_fault.go); no setting changes
// it.
func now() time.Time { return time.Now() }
