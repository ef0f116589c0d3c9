// Package store has no code. Its folders store everything that must survive a restart.
//
// # Postgres decides
//
// Every rule that several instances could break together is a constraint or a conditional write
// here: a unique index allows one open command per vehicle and lane, a settlement names the
// states that it may follow, triggers keep the audit log append-only. A write that many callers
// make at the same moment (claim, settle, add to the audit log) goes through a batcher, which
// joins waiting callers in one statement and one commit: see [motorpool/store/groupcommit].
//
// # Locks
//
// What another transaction holds delays nothing else. A statement that works for several callers
// passes over rows that are locked ("skip locked"), and says which: each caller tries its own
// again, in the next batch, for as long as a statement may wait for a lock, and then fails alone,
// with an error that names the lock ([motorpool/store/pg], LockedError). So such statements wait
// for each other in no order. Transactions of one caller lock vehicles by id and wait; an import,
// which locks many, lets go where it would wait for long.
//
// # Redis routes
//
// Redis may be emptied at any moment, which only delays callers. [motorpool/store/events] keeps
// the latest events there; subscribers that may have missed one get a reset. The rest is in
// [motorpool/store/redis].
//
// # Errors
//
// A missing row is a *telematics.Error. The error of a server that is unavailable
// is marked: see [motorpool/store/unavailable].
//
// # Packages
//
//	commands     commands: claims, settlements, progress, many vehicles, halts, their numbers, retention
//	activity     the audit log
//	alerts       alerts, and the limits that agencies set for them
//	agencykeys   the keys of agencies' apps, their sealed secrets, and the signatures that were used
//	events       the log of events, in Redis
//	idempotency  what was made under an idempotency key
//	settings     what all instances of an installation have in common
//	rentals      bookings, charges, payment methods, notices of the payment processor
//	vehicles     vehicles, units, stations, addresses, unknown units; the import of fleet files
//	twins        reported state of vehicles: cache, Redis, Postgres
//	pg           connection, transactions, prepared statements, row sets, migrations
//	redis        connection to Redis, pending commands, counts of requests
//	groupcommit  batches of calls that share one commit
//	unavailable  errors of servers that are unavailable, circuit breaker
//	migrations   the schema
//	storetest    servers and databases for tests
package store
