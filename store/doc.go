// Package store has no code. Its folders store everything that must survive a restart.
//
// # Postgres decides
//
// Every rule that several instances could break together is a constraint or a conditional write
// here: a unique index allows one open command per vehicle and lane, a settlement names the states
// that it may follow, triggers keep the audit log append-only. A write that many callers make at
// the same moment (claim, settle, add to the audit log) goes through a batcher, which joins waiting
// callers in one statement and one commit: see [motorpool/store/groupcommit].
//
// # Locks
//
// Rows are locked in one order everywhere, so that two instances cannot wait for
// each other: commands by id, units by vehicle, vehicles by id. Claim locks
// vehicles and then waits for commands; nothing goes the other way.
//
// # Redis routes
//
// Redis may be emptied at any moment, which only delays callers. [motorpool/store/events] keeps the
// latest events there; subscribers that may have missed one get a reset. The rest is in
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
