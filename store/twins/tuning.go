package twins

import (
	"time"

	"motorpool/store/redis"
	"motorpool/telematics"
)

const (
	// defaultFlushEvery is between two flushes to Postgres while reports come. Half: more commits
	// of the same vehicles; double: an instance that dies together with Redis loses more.
	defaultFlushEvery = 2 * time.Second
	// Checks in that time whether reports still come. Half: idle vehicles are written later;
	// double: more timers.
	idleChecks = 8

	// Vehicles in a transaction. Half: more commits; double: locks are held longer.
	postgresBatch = 512
	// Vehicles in a round trip. Half: more round trips; double: longer pauses for other clients of
	// Redis.
	redisBatch = 256
	// redisRounds bounds how often a section is written in a row that other instances keep
	// changing. It is queued again.
	redisRounds = 8

	// postgresShare and redisShare are the parts (1/n) of the time that flushing may take. Where a
	// server is slow, or the fleet is large, more reports are merged before they are written. To
	// Redis it is more where a caller waits.
	postgresShare = 4
	dueShare      = 2
	redisShare    = 2
	// spread is the part (1/n) of the state interval that is random.
	spread = 10
	// Between two flushes. Double: a slow server is found to be fast again later.
	longestPause = 5 * time.Second
	// Between the beginnings of two flushes to Redis where no caller waits. Half: more round trips;
	// double: other instances see a report later.
	redisEvery = 100 * time.Millisecond
	// Between two flushes to Redis all the same where a caller waits. Half: more round trips;
	// double: callers wait longer.
	awaitedPause = 5 * time.Millisecond

	// sharedWithin is how long an awaited report may take to be in Redis: the caller has time for
	// Postgres then.
	sharedWithin = redis.ReadTimeout / 2
	// Time for which Redis has a silent vehicle's state; Postgres has it permanently. Half: more
	// reads of Postgres alone; double: more memory.
	stateTTL = 24 * time.Hour

	// MaxStateInterval is the largest state interval: with the silence after which a report is
	// urgent, it is less than the silence after which a unit is not online any more.
	MaxStateInterval = 5 * time.Minute
	// urgentWithin is when what is urgent is due: a unit that was locked reports it in its answer,
	// and again a moment later. Half: more vehicles are written twice; double: Postgres, and what
	// does not read Redis, is later.
	urgentWithin = time.Second
	// States whose interval is over, in a transaction. Half: more commits; double: locks are held
	// longer.
	dueBatch = 512
	// Between two queries for such states, at most. Half: more round trips; double: urgent ones are
	// later.
	dueEvery = 500 * time.Millisecond
	// How long a state may be overdue before an instance writes without pauses. Half: more load on
	// Postgres in bursts; double: a fleet's state is later while the machine is busy.
	overdueAfter = 2 * time.Second
	// Time after which another instance may write what this one has leased. Half: the work of a
	// slow writer is done twice; double: states that a dead instance has leased are written later.
	dueLease = 15 * time.Second

	// hotWithin is the time between two reports of a vehicle whose state stays cached. Half: more
	// states are read from Redis for each report; double: more memory for states that another
	// instance changes meanwhile.
	hotWithin = 10 * time.Second
	// States of vehicles that are in no outbox, at about 4 KB. Half: states of a larger fleet are
	// loaded again.
	cachedStates     = 1 << 16
	evictionAttempts = 16 // states that are looked at for one that may be evicted
	// Units that could not be looked up. Half: a larger fleet loses reports while Postgres is
	// unavailable.
	maxUnresolved = 1 << 17

	// Units, with and without a vehicle, at about 250 bytes. Half: the units of a larger fleet are
	// looked up for each report.
	cachedOwners = 1 << 18
	// ownerTTL is how long an instance may not notice that a unit was built into another vehicle,
	// where it did not notice within movesEvery. Half: twice the lookups.
	ownerTTL = 10 * time.Minute
	// unknownTTL is how long it may not notice that an unknown unit was built into one.
	unknownTTL = 2 * time.Second
	// awaitedOwnerTTL is added for answers to what the vehicle was requested.
	awaitedOwnerTTL = telematics.MaxBudget
	lookupTimeout   = time.Second
	// movesEvery is how often units that have left their vehicles are read, and vehicles that have
	// come to another agency: the former one must not get their events.
	movesEvery = time.Second

	// Vehicles, at up to 1 KB. Half: orders to a larger fleet read the record first.
	cachedRecords = 1 << 15
)
