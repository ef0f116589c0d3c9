//go:build !clockfault

package app

import "time"

// now is this instance's clock, for the times of commands, requests and messages of vehicles. Only
// a build for the fault harness replaces it (clock_fault.go); no setting does.
func now() time.Time { return time.Now() }
