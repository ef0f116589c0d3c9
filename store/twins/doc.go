// Package twins keeps the reported state of vehicles: the newest value of each field that their
// units have reported, whatever the order of arrival [LAW-7].
//
//	                   ┌─► Redis      section by section, by compare-and-swap: every instance sees it
//	Observe ──► cache ─┤     │ due
//	                   │     ▼
//	                   └─► Postgres   in batches, under row locks: it survives
//
//	read ◄── the newest of Postgres, Redis and the cache
//
// Merging two snapshots has no order, so nothing can be overtaken: an empty Redis only means that
// Postgres has the rest.
//
// # The state interval
//
// Redis is where the reports of a vehicle are merged that reach several instances, or come so
// seldom that no instance has cached it. The vehicle gets a place in an index by time (dues),
// unless it has one: an instance, any, then writes what Redis has to Postgres. What is urgent is
// due within a second, and what changes the connectivity now. So a vehicle is written once in
// [Config].StateInterval, however many reports and instances there are.
//
//	        report                     due                  written
//	clean ──────────► marked ────────────────► taken ────────────────► clean
//	                    ▲                       │ │
//	                    └───────────────────────┘ └──► taken by another instance
//	                     a report                       the lease is over
//
// Redis keeps with a state which version of the snapshot in Postgres it has everything of (base).
// Where Postgres still has that version, it is replaced unread; else both are merged.
//
// Without a state interval each instance writes the states that it has cached. That is also how a
// state is written that Redis does not take, or has lost.
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
// Before its first flush to Redis a state is loaded: merged with what Redis has, and with what
// Postgres has unless Redis has all of that, so that only changes are published.
//
// # Laws
//
//   - Presence is in Postgres when Observe returns. A report is in the cache then, in Redis a
//     millisecond or two later, and in Postgres within [Config].StateInterval; without one, when no
//     report comes for a moment, or within [Config].FlushEvery.
//   - What is urgent is in Postgres within a second or two: a report that a caller awaits, a change
//     of an urgent field (urgentFields), and a report that changes the connectivity that follows
//     from Postgres.
//   - A report that a caller awaits (Report) is in Redis when the wait ends, or, where Redis is
//     unavailable, in Postgres.
//   - A change is published once, by the instance that wrote it to Redis.
//   - What a reader may remember is in Postgres before it is returned (DurableTwin): no later read
//     returns less, whatever fails.
//   - A state of another unit than the one that the vehicle has now does not count.
package twins
