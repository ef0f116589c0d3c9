// Package history keeps samples of what vehicles reported for some days: in partitions of Postgres,
// by day.
//
//	twins ──► Sampler ──► telemetry     every few seconds, some rows in a statement
//
// It is not part of any promise: what cannot be stored waits in bounded memory, and is then dropped
// and counted. It holds up neither reports nor commands.
package history

import "time"

const (
	// flushEvery is between two writes. Half: fields that a unit reports in separate messages, and
	// instances receive one each, update a row more often; double: an instance that dies loses
	// more.
	flushEvery = 15 * time.Second
	// Samples in a statement. Half: more commits; double: a statement takes longer.
	batch = 1000
	// The part (1/n) of the time that writing may take. Half the time: a fleet that comes back
	// after a failure is slower to be written; double: commands wait for Postgres's CPU.
	share = 3

	// daysAhead is for how many days partitions are made before they begin. Half: Postgres may be
	// unavailable for a shorter time; double: more empty tables.
	daysAhead = 2
	// keepEvery is between two looks for partitions that are missing, or too old. Half: more
	// statements; double: samples are dropped for longer where the first one fails.
	keepEvery = 10 * time.Minute
	// keepAgain is likewise, after a failure.
	keepAgain = 10 * time.Second

	// MaxDays is the longest time to keep samples. Half: no season can be compared with the one
	// before; double: Postgres plans each read over as many partitions.
	MaxDays = 366
)
