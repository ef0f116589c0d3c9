//go:build race

package broker_test

// raceDetector reports that the tests run with the race detector.
const raceDetector = true
