// Package twins stores the reported state of vehicles: the newest value of each field that their
// units have reported, whatever the order of arrival [LAW-7].
//
//	                   ┌─► Redis      section by section, by compare-and-swap: every instance sees it
//	Observe ──► cache ─┤     │ due
//	                   │     ▼
//	                   └─► Postgres   in batches, under row locks: it survives
//
//	read ◄── the newest of Postgres, Redis and the cache
//
// Merging snapshots is commutative, so the order of writes does not matter: where Redis was
// emptied, Postgres has the rest.
//
// # The state interval
//
// Reports of one vehicle are merged in Redis where they reach several instances, or come so seldom
// that no instance has cached the vehicle. The vehicle is added to an index by due time (dues),
// unless it is there already: when it is due, any instance writes its state from Redis to Postgres.
// Urgent changes are due within a second, and changes of the connectivity immediately. So a vehicle
// is written once in [Config].StateInterval, however many reports and instances there are.
//
//	        report                     due                  written
//	clean ──────────► marked ────────────────► taken ────────────────► clean
//	                    ▲                       │ │
//	                    └───────────────────────┘ └──► taken by another instance
//	                     a report                       the lease is over
//
// Redis stores with a state the version of the snapshot in Postgres that it includes (base). Where
// Postgres still has that version, the snapshot is replaced unread; else both are merged.
//
// An instance itself writes to Postgres a state that it has cached and that Redis refuses, has
// lost, or does not take for the moment.
//
// # A cached state
//
// A cached state is in up to two outboxes, that of Redis and that of Postgres. In each, it has one
// of these states:
//
//	            report               flush begins             written
//	clean ───────────────► queued ──────────────► flushing ───────────► clean
//	                         ▲                       │
//	                         └───────────────────────┘
//	                 a report, a failure, too many conflicts
//
// Before its first flush to Redis a state is loaded: merged with the state in Redis, and with that
// in Postgres unless Redis includes it, so that only changes are published.
//
// # Laws
//
//   - Presence is in Postgres when Observe returns. A report is in the cache then, in Redis a
//     millisecond or two later, and in Postgres within [Config].StateInterval, or within
//     [Config].FlushEvery where Redis does not take it.
//   - What is urgent is in Postgres within a second or two: a report that a caller awaits, a change
//     of an urgent field (urgentFields), and a report that changes the connectivity that follows
//     from Postgres.
//   - A report that a caller awaits (Report) is in Redis when the wait ends, or, where Redis is
//     unavailable, in Postgres.
//   - A change is published once, by the instance that wrote it to Redis.
//   - What a reader of one vehicle may remember is in Postgres before it is returned (DurableTwin):
//     no later read returns less, whatever fails. A vehicle of which more is returned, in a list or
//     while Postgres is slow, is Unstored.
//   - A state of another unit than the one that the vehicle has now does not count.
package twins
