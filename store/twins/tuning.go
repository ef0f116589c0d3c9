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
	// Vehicles in a trip. Half: more trips; double: longer pauses for other clients of Redis.
	redisBatch = 256
	// redisRounds bounds how often a section is written in a row that other instances keep
	// changing. It is queued again.
	redisRounds = 8

	// postgresShare and redisShare are the parts (1/n) of the time that flushing may take. Where a
	// server is slow, or the fleet is large, more reports are merged before they are written. To
	// Redis it is more where a caller waits.
	postgresShare = 4
	redisShare    = 2
	// Between two flushes. Double: a slow server is found to be fast again later.
	longestPause = 5 * time.Second
	// Between two flushes to Redis all the same where a caller waits. Half: more trips; double:
	// callers wait longer.
	awaitedPause = 5 * time.Millisecond

	// sharedWithin is how long an awaited report may take to be in Redis: the caller has time for
	// Postgres then.
	sharedWithin = redis.ReadTimeout / 2
	// Time for which Redis has a silent vehicle's state; Postgres has it permanently. Half: more
	// reads of Postgres alone; double: more memory.
	stateTTL = time.Hour

	// States of vehicles that are in no outbox, at about 4 KB. Half: states of a larger fleet are
	// loaded again.
	cachedStates     = 1 << 16
	evictionAttempts = 16 // states that are looked at for one that may be evicted
	// Units that could not be looked up. Half: a larger fleet loses reports while Postgres is
	// unavailable.
	maxUnresolved = 1 << 17

	cachedOwners = 1 << 17 // units, with and without a vehicle
	// ownerTTL is how long an instance may not notice that a unit was built into another vehicle.
	// Half: twice the lookups.
	ownerTTL = 10 * time.Second
	// unknownTTL is how long it may not notice that an unknown unit was built into one.
	unknownTTL = 2 * time.Second
	// awaitedOwnerTTL is added for answers to what the vehicle was requested.
	awaitedOwnerTTL = telematics.MaxBudget
	lookupTimeout   = time.Second
	// movesEvery is how often vehicles that have come to another agency are read: the former one
	// must not get their events.
	movesEvery = time.Second

	// Vehicles, at up to 1 KB. Half: orders to a larger fleet read the record first.
	cachedRecords = 1 << 15
)
