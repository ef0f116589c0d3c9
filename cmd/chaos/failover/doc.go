// Package failover is a round of the fault harness: Postgres's primary is killed, and an asynchronous standby that is seconds behind is
// promoted. Then no vehicle may refuse a command as out of order, and every command that a vehicle has executed is on record, or its
// answer is written down as one to a command that is not.
//
//	callers ─ instance 0, 1 ─ proxy ─ primary ─ proxy ─ standby
//	               └─ Mosquitto ─ cars, with a flight recorder
package failover
