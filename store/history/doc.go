// Package history stores samples of what vehicles reported, for some days, in one partition of
// Postgres for each day.
//
//	twins ──► Sampler ──► telemetry     every few seconds, some rows in a statement
//
// It is best effort: samples that cannot be stored wait in bounded memory, and are then dropped and
// counted. It delays neither reports nor commands.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package history

import "time"

const (
	// flushEvery is the interval of writes. Half: fields that a unit reports in separate messages,
	// and instances receive one each, update a row more often; double: an instance that dies loses
	// more.
	flushEvery = 15 * time.Second
	// Samples in a statement. Half: more commits; double: a statement takes longer.
	batch = 1000
	// Writing may take 1/share of the time. Half the time: a fleet that comes back after a failure
	// is slower to be written; double: commands wait for Postgres's CPU.
	share = 3

	// daysAhead is the number of days for which partitions are created in advance. Half: Postgres
	// may be unavailable for a shorter time; double: more empty tables.
	daysAhead = 2
	// keepEvery is the interval of checks for partitions that are missing, or too old. Half: more
	// statements; double: samples are dropped for longer where the first one fails.
	keepEvery = 10 * time.Minute
	// keepAgain is that interval after a failure.
	keepAgain = 10 * time.Second

	// MaxDays is the longest time to keep samples. Half: no season can be compared with the one
	// before; double: Postgres plans each read over as many partitions.
	MaxDays = 366
)
