package ingest

import "time"

// Each constant: its value and unit, where the value comes from, and what breaks at half and at
// double.

// Observations.
const (
	// MaxBatch is how many messages or observations are handled in one step; a choice. Half: more
	// statements under load. Double: longer locks on rows.
	MaxBatch = 512
	// Pause after observations were not stored; a choice. Half: more attempts in an outage.
	// Double: 1 s later afterwards.
	writeRetry = time.Second
	// First pause before presence is stored whose unit another transaction holds; it doubles up
	// to writeRetry. Half: more attempts. Double: presence is 50 ms later when units are busy.
	lockedRetry = 50 * time.Millisecond
	// Presence that waits for such units, at about 300 bytes. Half: less survives a long lock of
	// all units. Double: more memory.
	maxLocked = 1 << 15
	// Time in which reports join a batch; a choice. Half: more batches, and so more CPU time for
	// a report. Double: a report is seen 50 ms later.
	reportDebounce = 50 * time.Millisecond
	// Bytes of queued reports: a few large ones take as much memory as many small ones; a choice.
	// Half: a burst of large reports is dropped. Double: 128 MB.
	maxQueued = 64 << 20
	// Units whose allowance is tracked, about 200 bytes each. The one that was silent for longest
	// is dropped: a unit that floods never is. Half: 4,096 units that flood in turns escape.
	// Double: more memory.
	maxSenders = 1 << 13
	// By how much a report of a burst may be dated after its arrival: a millisecond for each
	// message that a unit may send at one moment. Half: the last half of such a burst has no order.
	// Double: where the clock was set back, reports are dated ahead for longer.
	maxEarly = 512 * time.Millisecond
	// Interval of log messages about units over their allowance, units named in each, and units
	// counted meanwhile; choices for a readable log.
	warnEvery = 10 * time.Second
	warnUnits = 5
	maxNoisy  = 1000
	// Units whose latest presence message is cached, at about 250 bytes. Half: in larger fleets,
	// the presence of a unit whose clock has gone back may count as old. Double: more memory.
	maxLatest = 1 << 18
	// Interval in which unknown units are stored: one that sends a hundred messages a second costs
	// as much as one that sends one. Half: more statements. Double: a new unit appears 10 s late.
	unknownUnitsEvery = 5 * time.Second
	// Interval of queries for vehicles that have become silent, by which their events are late at
	// most; a choice. Half: more statements. Double: the events are up to 10 s late.
	agedEvery = 5 * time.Second
	// Interval in which the health of units is stored, and units in a statement: at most 100 a
	// second per instance. Half the interval: more statements; half the units: the clocks of
	// 100,000 are stored half an hour after a start. Double: health is seen 10 s later; longer
	// statements.
	healthEvery = 10 * time.Second
	healthBatch = 1000
	// Units whose health waits to be stored, and whose clocks are cached (100 bytes each). Half:
	// in fleets above that, clocks are stored repeatedly, and rejects are not counted. Double:
	// more memory.
	maxHealth = 1 << 18
	// Period whose reports decide on a clock: of a unit that reports once a minute, some are not
	// delayed. Half: a bad network looks like a clock that is behind. Double: a clock that has
	// fallen behind is noticed 5 minutes later.
	clockWindow = 5 * time.Minute
	// Least spread of the delays of late reports within clockWindow: with a clock that is behind,
	// all reports are late by the same time.
	lateSpread = time.Minute
	// A reading that differs by less is stored once in clockRefresh. Half: the network's delays
	// are stored. Double: the clock is known to 4 s.
	clockStep    = 2 * time.Second
	clockRefresh = time.Hour
	// Time that an answer waits until its report is stored; a choice. Half: callers may read the
	// former state. Double: the trouble of one vehicle delays the answers of others.
	reportTimeout = 250 * time.Millisecond
)

// Allowances. A unit that keeps the protocol stays far below these. After a long time offline it
// sends the answers that were not acknowledged, at most one received and one final answer of each
// of the 64 commands that it keeps [CMD-5].
var (
	reportAllowance   = Allowance{Rate: 100, Burst: 512, Bytes: 1 << 20}
	presenceAllowance = Allowance{Rate: 5, Burst: 64, Bytes: 1 << 20}
)
