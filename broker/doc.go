// Package broker sends commands to vehicles, and receives their answers.
//
// A command goes one way, whatever fails on it:
//
//	Send ─► accept ─► claim lane + row ─┬─► publish ─► … ─► settled row ─► caller
//	                  (Commands)        │   (Publisher) ▲         ▲
//	                  pending entry     │    retransmit, until    │
//	                  (PendingTable) ───┘    there is an answer   │
//	the unit's answer, at any instance ─► Answer ─► settle by conditional update
//	                                      └► wake: in process, or by a hint to the instance that waits
//
// The record decides and everything else may fail: a lost wake-up costs a second, because the
// record is also polled; an instance that dies leaves a row that another one's sweeper settles; a
// late answer still settles.
//
// # Laws kept here
//
//   - Written before sent: Claim returns before Publish is called [LAW-1].
//   - The waiter exists before the message is published [LAW-2].
//   - A settled command is what the record says, by the lifecycle table [LAW-3].
//   - Nothing is published that could run late: not retained, and not within half a
//     second of its expiry [LAW-4].
//   - A callback of the MQTT client hands over to a bounded queue and returns; overflow is
//     counted [LAW-8].
//   - A refusal leaves an audit log entry, too [LAW-9].
//
// The ports that the package needs are in ports.go, and in package ingest, which stores what units
// report unasked. Their contracts, as suites, and in-memory fakes are in package brokertest.
package broker
