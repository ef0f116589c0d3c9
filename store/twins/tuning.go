package twins

import (
	"time"

	"motorpool/store/redis"
	"motorpool/telematics"
)

const (
	// defaultFlushEvery is the interval of flushes to Postgres while reports come. Half: more
	// commits of the same vehicles; double: an instance that dies together with Redis loses more.
	defaultFlushEvery = 2 * time.Second
	// Checks in that time whether reports still come. Half: idle vehicles are written later;
	// double: more timers.
	idleChecks = 8

	// Vehicles in a transaction. Half: more commits; double: locks are held longer.
	postgresBatch = 512
	// Vehicles in a round trip. Half: more round trips; double: longer pauses for other clients of
	// Redis.
	redisBatch = 256
	// redisRounds limits how often a section that other instances keep changing is written in a
	// row. After that, it is queued again.
	redisRounds = 8

	// postgresShare, dueShare and redisShare: flushing may take 1/n of the time. Where a server is
	// slow, or the fleet is large, more reports are merged before they are written. Flushing to
	// Redis may take more of the time while a caller waits.
	postgresShare = 4
	dueShare      = 2
	redisShare    = 2
	// spread: 1/n of the state interval is random.
	spread = 10
	// Longest pause between two flushes. Double: a server that is fast again is noticed later.
	longestPause = 5 * time.Second
	// Interval of flushes to Redis where no caller waits. Half: more round trips; double: other
	// instances see a report later.
	redisEvery = 100 * time.Millisecond
	// Shortest pause between two flushes to Redis, also where a caller waits. Half: more round
	// trips; double: callers wait longer.
	awaitedPause = 5 * time.Millisecond

	// sharedWithin is how long an awaited report may take to be in Redis: that leaves time to store
	// it in Postgres instead.
	sharedWithin = redis.ReadTimeout / 2
	// Time for which Redis keeps a silent vehicle's state; Postgres keeps it permanently. Half:
	// more reads of Postgres alone; double: more memory.
	stateTTL = 24 * time.Hour

	// MaxStateInterval is the largest state interval: with the silence after which a report is
	// urgent, it is less than the silence after which a unit is not online any more.
	MaxStateInterval = 5 * time.Minute
	// urgentWithin is the time after which an urgent change is due in Postgres: a vehicle that was
	// locked reports it in the answer, and again a moment later. Half: more vehicles are written
	// twice; double: readers of Postgres alone see it later.
	urgentWithin = time.Second
	// urgentMetres is how far a vehicle whose ignition is off must have moved since its last report
	// for that to be urgent. Half: what a receiver's position drifts is urgent; double: a slow tow
	// shows up to a state interval later.
	urgentMetres = 25
	// Due states in a transaction. Half: more commits; double: locks are held longer.
	dueBatch = 512
	// Longest interval of queries for due states. Half: more round trips; double: urgent ones are
	// written later.
	dueEvery = 500 * time.Millisecond
	// How long a state may be overdue before an instance writes without pauses. Half: more load on
	// Postgres in bursts; double: a fleet's state is later while the machine is busy.
	overdueAfter = 2 * time.Second
	// Time after which another instance may write what this one has leased. Half: the work of a
	// slow writer is done twice; double: states that a dead instance has leased are written later.
	dueLease = 15 * time.Second

	// hotWithin is the longest time between two reports of a vehicle whose state is kept.
	// Half: more states are read from Redis for each report; double: more memory for states that
	// another instance changes meanwhile.
	hotWithin = 10 * time.Second
	// States of those vehicles, at about 3 KB. Half: states of a larger fleet are read again.
	hotStates = 1 << 16
	// Units that could not be looked up. Half: a larger fleet loses reports while Postgres is
	// unavailable.
	maxUnresolved = 1 << 17
	// Alarms of such a unit. Half: of one that raises many, the later ones are lost.
	alarmsKept = 32

	// Units, with and without a vehicle, at about 250 bytes. Half: the units of a larger fleet are
	// looked up for each report.
	cachedOwners = 1 << 18
	// ownerTTL is the expiry of a cached owner, for moves of units that were not noticed within
	// movesEvery. Half: twice the lookups.
	ownerTTL = 10 * time.Minute
	// unknownTTL is that expiry for an unknown unit.
	unknownTTL = 2 * time.Second
	// awaitedOwnerTTL is added to ownerTTL for answers to requests to the vehicle.
	awaitedOwnerTTL = telematics.MaxBudget
	lookupTimeout   = time.Second
	// movesEvery is the interval of queries for units that have moved to or from a vehicle, and
	// vehicles that have moved to another agency: the former agency must not get their events.
	movesEvery = time.Second

	// heldLong is the age of another transaction with a unit that is logged. Half: meetings of busy
	// instances are. Double: a lock is logged a second later.
	heldLong = time.Second

	// Vehicles, at up to 1 KB. Half: orders in a larger fleet read Postgres first.
	cachedRecords = 1 << 15
)
