// Package broker carries commands to vehicles, and answers and telemetry back.
//
// A command goes one way, whatever fails on it:
//
//	Send ─► claim lane + row ─► pending entry ─► waiter ─► publish ─► … ─► settled row ─► caller
//	        (Commands)          (PendingTable)              (Air)  ▲            ▲
//	                                                      again, until an answer │
//	the unit's answer, at any instance ─► Answer ─► settle by conditional update ┘
//	                                                └► wake: in process, or by a hint to the instance that waits
//
// The record decides and everything else may fail: a lost wake-up costs a second,
// because the waiter also asks the record; an instance that dies leaves a row that
// another one's sweeper settles; an answer that comes too late still settles.
//
// # Laws kept here
//
//   - Written before sent: Claim returns before Publish is called [LAW-1].
//   - The waiter stands before the message is published [LAW-2].
//   - A settled command is what the record says, by the lifecycle table [LAW-3].
//   - Nothing is published that could run late: not retained, and not within half a
//     second of its expiry [LAW-4].
//   - A callback of the MQTT client hands over to a bounded queue and returns; what
//     does not fit is counted [LAW-8].
//   - A refusal leaves a line in the history too [LAW-9].
//
// The ports that the package needs are in ports.go; their contracts, as suites,
// and in-memory fakes are in package brokertest.
package broker
