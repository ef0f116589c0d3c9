package broker

import (
	"time"

	"motorpool/broker/ingest"
)

// Each constant: its value and unit, where the value comes from, and what breaks at half and at
// double.

// Retransmission.
const (
	// Measured: units on a cellular network answer within 2 to 10 s. Half: messages are
	// retransmitted while their answers are on their way. Double: in a budget of 10 s a lost
	// message is mostly retransmitted once (after 4 s) instead of twice or three times (after 2, 5
	// and 9.5 s).
	minRetransmit = 2 * time.Second
	// Factor of each wait over the one before; a choice. 0.75: the waits add up to no more than 8
	// s, so copies follow each other without end. 3: in a budget of 10 s the second retransmission,
	// and last, comes after 8 s instead of 5.
	retransmitGrowth = 1.5
	// Part of a wait by which it is shortened or lengthened at most; a choice. Half: commands that
	// were sent together are retransmitted together for longer. Double: the first retransmission
	// may come at 1.2 s.
	retransmitJitter = 0.2
	// Factor of the waits once the unit has received the command; a choice. 1 retransmits as if the
	// unit had not answered. 4: the first retransmission comes 8 s after that, so a budget of 10 s
	// mostly has none.
	receivedFactor = 2
	// Interval of attempts until the MQTT client has accepted the message once; a choice. Half:
	// more attempts while it is not connected. Double: a reconnection is noticed up to 0.5 s late.
	publishRetry = 250 * time.Millisecond
	// Time before the expiry in which nothing is published: link.Config.WriteTimeout, 0.4 s, and a
	// margin [LAW-4]. Half: a message may leave the socket after its expiry. Double: up to a second
	// at the end of a budget is not used.
	expiryGuard = 500 * time.Millisecond
	// Factor by which one answer moves the estimated round trip; simulated in round_trip_test.go.
	// Half: a median of 5 s is learned after 160 answers instead of 80. Double: ten slow answers in
	// a row raise the estimate by half.
	roundTripStep = 1.02
	// Lowest estimate: twice that is the shortest wait, so less makes no difference. Double: the
	// first wait is at least 4 s, or 2.7 s in a budget of 10 s.
	minRoundTrip = minRetransmit / 2
	// Highest estimate: the slowest answers of a cellular network. Half: retransmissions there come
	// before the answers. Double: it is more than a usual budget, in which the first wait is then
	// minRetransmit: firstRetransmit leaves one round trip before the end.
	maxRoundTrip = 10 * time.Second
)

// Expiry.
const (
	// Time that the owner of a command has after its deadline, before other instances settle it; a
	// choice; telematics.ClockTolerance more where it lives. Half: a slow owner is overtaken, and
	// its command recorded as unknown. Double: lanes of dead owners are blocked for longer [LAW-6].
	ownerGrace = time.Second
	// Overdue for longer than this, a command was not on record before: its claim waited in
	// Postgres, or Postgres was unavailable. From ownerGrace and telematics.ClockTolerance on each
	// sweep settles it, and one may take StepTimeout and a second. Half: a sweep that is late waits
	// needlessly. Double: fewer owners come first.
	lateAfter = 7 * time.Second
	// Time that owners of such commands have, who know whether they were sent: a pass of the
	// outbox, and a second for Postgres. Half: commands that were never sent end as unknown.
	// Double: lanes of dead owners are blocked for longer [LAW-6].
	lateGrace = 2 * time.Second
	// The same, where the owner lives: it settles its commands by itself, unless its clock is wrong
	// or it hangs. An outbox of maxOutboxSettlements takes some 10 s. Half: on a slow Postgres,
	// outcomes of a full one are overtaken by unknown. Double: lanes of owners that hang are
	// blocked for a minute after an outage [LAW-6].
	longestGrace = 30 * time.Second
	// Commands of one sweep, and settlements retried concurrently: the default batch of a
	// statement. A full sweep is followed by the next immediately, of twice as many where some are
	// left to their owners. Half: statements are half full. Double: two statements instead of one.
	sweepBatch = 256
)

// Orders to many vehicles.
const (
	// Vehicles handled concurrently; a choice. Half: an order to 1,000 vehicles takes twice as
	// long. Double: it takes more connections to Postgres from other commands.
	bulkWorkers = 64
	// Time to record why vehicles have no command, once the order's time has passed; a choice.
	// Half: a slow Postgres loses entries of an order to 1,000 vehicles. Double: the caller waits 5
	// s longer.
	bulkRecordTimeout = 5 * time.Second
	// Number of nonexistent vehicles that an audit log entry names; a choice. Half: fewer to search
	// for. Double: longer entries.
	bulkUnknownNamed = 20
)

// Outbox.
const (
	// Time for which the command of a settlement may be missing in Postgres: a row whose claim was
	// believed lost may appear for as long as a statement may take (3 s), with a failover in
	// between. Half: a failover of Postgres that takes 30 s loses it. Double: more memory.
	settlementRetryFor = time.Minute
	// Settlements kept while Postgres takes none, about 1 KB each; a choice. Half: commands that
	// were never sent end as unknown after a long outage. Double: 32 MB.
	maxOutboxSettlements = 16 << 10
	// Audit log entries kept while the log takes none, about 1 KB each; a choice [LAW-9]. Half:
	// lost earlier in an outage. Double: 8 MB. An entry whose writing was only believed to have
	// failed is then there twice, which misleads less than a missing one.
	maxOutboxEntries = 4096
	// Time for which an entry is retried; a choice. Half: an outage of 10 minutes loses entries.
	// Double: entries appear that late.
	entryRetryFor = 10 * time.Minute
	// Time that entries of the pending table outlive their commands; a choice. Half: more round
	// trips to Redis. Double: larger ones.
	releaseDebounce = 20 * time.Millisecond
	// Time after which the progress of a command is stored: most final answers of connected units
	// come sooner and store it, too (measured). Half: more rows are written twice. Double: readers
	// of the command see its progress later.
	progressAfter = 250 * time.Millisecond
	// Further time in which the progress of other commands joins; a choice. Half: more statements.
	// Double: later still.
	progressDebounce = 50 * time.Millisecond
)

// Answers.
const (
	// Answers of each kind (open, final) that precede all others of the instance: units repeat
	// their answer for each copy of a command, of which a budget of 30 s has at most six. Half:
	// duplicates that MQTT delivers reach it. Double: a unit that floods has more of them.
	answersFirst = 16
	// Workers divided by this, plus one, is the number of further workers that handle only answers
	// to commands in flight here, so that a pending table that does not answer does not stop them;
	// a choice. 2: twice as many goroutines that are mostly idle. 8: too few while Redis hangs.
	firstShare = 4
	// Time after which an answer that Postgres has not taken is handled again; a choice. Half: more
	// attempts during an outage. Double: a command is settled up to 2 s after one.
	answerAgainAfter = time.Second
	// Workers for uncorrelated answers, and as many for repeated results: fewer than Workers, and
	// enough for a pending table that was emptied. Half: late answers wait for longer. Double: they
	// take connections to Postgres from commands.
	uncorrelatedWorkers = 8
	// Time that the pending table has to find an answer's command; a choice. An answer that it
	// could not look up is settled like one that it has, or, beyond its unit's allowance, dropped.
	// Half: both happen while Redis is slow. Double: answers queue up while it hangs.
	lookupTimeout = 250 * time.Millisecond
	// Units whose settled results are cached: a large fleet. Each report names the results of the
	// one before, so a cache that is smaller than the fleet has no hits: at half, for fleets above
	// 32,768, each result costs a row of a statement per report. Double: 25 MB more.
	resultUnits = 1 << 16
	// Results cached per unit: more than a report names [TEL-3], since answers are not settled in
	// order. Half: as many as it names, and some are looked up again and again. Double: twice the
	// memory.
	resultsPerUnit = 16
)

// Allowances of one unit's answers, as in package ingest. lookUpAllowance is of answers beyond
// their allowance that are looked up in the pending table, all in a few round trips; and of those
// that wait for Postgres, each queued again once a second. repeatedAllowance is of results that
// wait to be looked up: those of two reports [TEL-3]; a choice. With half, a second report that
// comes soon is dropped; with double, a unit that invents results has more of the queue.
var (
	answerAllowance = ingest.Allowance{Rate: 20, Burst: 128, Bytes: 1 << 20}
	lookUpAllowance = ingest.Allowance{Rate: 10_000, Burst: 512, Bytes: 1 << 20}

	repeatedAllowance = ingest.Allowance{Rate: 10_000, Burst: 16, Bytes: 1 << 20}
)

// Polling of Postgres, since wake-ups may be lost.
const (
	// Interval; a lost wake-up delays its caller by that much. Half: twice the statements. Double:
	// callers wait up to 2 s longer.
	pollEvery = time.Second
	// Parts of a poll: of many commands in one statement, answers wait for it (measured with
	// 20,000). Half: longer statements. Double: more.
	pollParts = 16
	// Commands that are polled in an interval; beyond, each has its turn more rarely (measured with
	// 20,000). Half: a lost wake-up costs 10 s there. Double: answers wait for polls.
	pollMost = 4096
)

// Clock and halts.
const (
	// MaxSkew is how far the clock of an instance may differ from the database's [LAW-11]. Units
	// accept commands that are signed up to 5 s ahead of their clocks [CMD-9], and an iat may be
	// wrong by MaxSkew at most. Half: machines with a poor clock send nothing. Double: two
	// instances may differ by 4 s.
	MaxSkew = time.Second
	// Interval of comparisons; a choice. Half: more statements. Double: a clock that jumps is
	// noticed up to 1 s late.
	clockEvery = 500 * time.Millisecond
	// Time in which two units that report us ahead raise an alarm; a choice. Half: missed in small
	// fleets. Double: two units with wrong clocks are taken for one instance.
	clockAlarmWithin = time.Minute
	// HaltWithin is how long after it was stored a halt holds everywhere: an instance that could
	// not read the halts for that long publishes no command. Half: a short outage of Postgres stops
	// commands. Double: a halt takes 6 s.
	HaltWithin = 3 * time.Second
	// Interval of readings: six within HaltWithin. Half: more statements. Double: two failed
	// readings stop commands.
	haltsEvery = 500 * time.Millisecond
)

// Events.
const (
	// Time for which events are retried: a failover of Redis, while the queue holds newer events.
	// Half: subscribers get a reset at each failover. Double: at more than 1,600 events a second
	// the queue overflows first.
	eventRetryFor = 5 * time.Second
	// Time in which events join a batch: those of one command come within milliseconds. Half: more
	// round trips. Double: events are later.
	eventDebounce = 20 * time.Millisecond
	// Pause between attempts; a choice. Half: more attempts in an outage. Double: 0.2 s later after
	// it.
	eventRetry = 200 * time.Millisecond
	// Interval in which a gap is published where no event comes; a choice. Half: more attempts.
	// Double: subscribers get their reset 1 s later.
	gapRetry = time.Second
)
