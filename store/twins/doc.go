// Package twins keeps the reported state of vehicles: the newest value of each field that their
// units have reported, whatever the order of arrival [LAW-7].
//
//	                     ┌─► Redis      section by section, by compare-and-swap: every instance sees it
//	Observe ──► cache ───┤
//	                     └─► Postgres   in batches, under row locks: it survives
//
//	read ◄── the newest of Postgres, Redis and the cache
//
// Merging two snapshots has no order, so nothing can be overtaken: an empty Redis only means that
// Postgres has the rest.
//
// # A cached state
//
// Each is in up to two outboxes, one of Redis and one of Postgres, and in each of them in one of
// these:
//
//	            report               flush begins             written
//	clean ───────────────► queued ──────────────► flushing ───────────► clean
//	                         ▲                       │
//	                         └───────────────────────┘
//	                 a report, a failure, too many conflicts
//
// Before its first flush to Redis a state is loaded: merged with what Redis and Postgres have, so
// that only changes are published.
//
// # Laws
//
//   - Presence is in Postgres when Observe returns. A report is in the cache then, in Redis a
//     millisecond or two later, and in Postgres when no report comes for a moment, or within
//     [Config].FlushEvery.
//   - A report that a caller awaits (Report) is in Redis when the wait ends, or, where Redis is
//     unavailable, in Postgres.
//   - A change is published once, by the instance that wrote it to Redis.
//   - What a reader may remember is in Postgres before it is returned (DurableTwin): no later read
//     returns less, whatever fails.
//   - A state of another unit than the one that the vehicle has now does not count.
package twins
