// Package broker sends commands to vehicles, and receives their answers.
//
// Every command takes this path:
//
//	Send ─► accept ─► claim lane + row ─┬─► publish ─► … ─► settled row ─► caller
//	                  (Commands)        │   (Publisher) ▲         ▲
//	                  pending entry     │    retransmit, until    │
//	                  (PendingTable) ───┘    there is an answer   │
//	the unit's answer, at any instance ─► Answer ─► settle by conditional update
//	                                      └► wake: in process, or by a hint to the instance that waits
//
// The row in Postgres decides, and everything else may fail: a lost wake-up costs a second, because
// the row is also polled; the commands of an instance that dies are settled by the sweeper of
// another one; a late answer still settles its command.
//
// # Laws kept here
//
//   - Written before sent: Claim returns before Publish is called [LAW-1].
//   - The waiter exists before the message is published [LAW-2].
//   - A settled command is what its row says, by the lifecycle table [LAW-3].
//   - Nothing is published that could run late: not retained, and not within half a
//     second of its expiry [LAW-4].
//   - A callback of the MQTT client hands over to a bounded queue and returns; overflow is
//     counted [LAW-8].
//   - A refusal leaves an audit log entry, too [LAW-9].
//
// A unit may do less than one of protocol v1: all that follows from that is in package besteffort,
// which the broker calls before a claim, for an answer that names no command, while a command
// waits, and at its deadline.
//
// The ports of the package are in ports.go, and in package ingest, which stores what units send
// unasked. Package brokertest has their contract test suites and in-memory fakes.
package broker
