// Package money shows that money moves exactly once. It runs several instances of the service as processes, over real
// servers and a payment processor, and leads many bookings through their lives by HTTP: started, extended, fined, refunded,
// captured from, ended. Meanwhile it kills the instances, Postgres and the processor, and the processor breaks by itself: it
// charges and does not answer, and it answers with errors that it repeats under the same key.
//
//	callers ─HTTP─ instances ─ Postgres, Redis, Mosquitto
//	                   │  ▲
//	                   ▼  └─ relay ─┐ notices, now by one instance and now by all; some are lost
//	               processor ───────┘
//
// Every call is repeated under its key until the answer is definite. Then everything is healed, all is waited for, and three
// accounts are held against each other: what the callers were answered, what Postgres says, and the processor's own ledger.
package money
