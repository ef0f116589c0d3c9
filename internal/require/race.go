//go:build race

package require

// Race reports that the tests run with the race detector, which makes them several times slower.
const Race = true
