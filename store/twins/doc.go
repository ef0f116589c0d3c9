// Package twins stores the reported state of vehicles: the newest value of each field that their
// units have reported, whatever the order of arrival [LAW-7].
//
//	                   ┌─► Redis      by compare-and-swap: every instance sees it
//	Observe ──► queue ─┤     │ due
//	                   │     ▼
//	                   └─► Postgres   in batches, under row locks: it survives
//
//	read ◄── the newest of Postgres, Redis and the queue
//
// Merging snapshots is commutative, so the order of writes does not matter: where Redis was
// emptied, Postgres has the rest.
//
// # The way to Redis
//
// Reports gather in the queue for a moment (pending: the newest value of each field). A flush reads
// the states of their vehicles from Redis, merges, and writes each on the condition that it has not
// changed meanwhile; else it reads it once more (update). What Redis does not take stays in the
// queue, and this instance writes it to Postgres; it is published when Redis has it. The state of a
// vehicle that reports often is kept (hotState), so that it need not be read again, and is written
// once more where Redis has lost it.
//
// A state that Redis does not have is merged with that in Postgres before, so that only changes are
// published.
//
// # The state interval
//
// Reports of one vehicle are merged in Redis where they reach several instances, or come seldom.
// The vehicle is added to an index by due time (dues), unless it is there already: when it is due,
// any instance writes its state from Redis to Postgres. Urgent changes are due within a second, and
// changes of the connectivity immediately. So a vehicle is written once in [Config].StateInterval,
// however many reports and instances there are.
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
// # Laws
//
//   - Presence is in Postgres when Observe returns. A report is in the queue then, in Redis a
//     millisecond or two later, and in Postgres within [Config].StateInterval, or within
//     [Config].FlushEvery where Redis does not take it.
//   - What is urgent is in Postgres within a second or two: a report that a caller awaits, a change
//     of an urgent field (urgentFields), a move with the ignition off, and a report that changes the
//     connectivity that follows from Postgres.
//   - A report that a caller awaits (Report) is in Redis when the wait ends, or, where Redis is
//     unavailable, in Postgres.
//   - A change is published once, by the instance that wrote it to Redis.
//   - What a reader of one vehicle may remember is in Postgres before it is returned (DurableTwin):
//     no later read returns less, whatever fails. A vehicle of which more is returned, in a list or
//     while Postgres is slow, is Unstored.
//   - A state of another unit than the one that the vehicle has now does not count.
package twins
