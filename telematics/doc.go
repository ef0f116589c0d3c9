// Package telematics is the language of the field: vehicles, their telematics
// units, the commands that move them, the state that they report, and the
// protocol between units and service. It holds no connection and does no I/O, so
// that you can read and test every rule in it alone.
//
// # Glossary
//
// One term for each concept, in code, logs, tests and documentation:
//
//	vehicle          a car, van or scooter of an agency, named by an integer id
//	unit             the telematics unit in it, named by its serial; the only name on the wire
//	unknown unit     a unit that sends messages and is assigned to no vehicle
//	protocol         what a unit speaks; a Dialect is its codec
//	command          one action for one vehicle, with a budget of seconds for its answer
//	in flight        of a command: accepted, and not settled yet
//	lane             what a command occupies: one open command for each vehicle and lane
//	claim            write the row of a command and occupy its lane, in one statement
//	publish          hand a message to the MQTT broker; publish an event to its subscribers
//	retransmit       publish a command again, after the retransmission timeout
//	answer           what the unit says about a command: received, succeeded, rejected, failed
//	uncorrelated     of an answer: no caller of this instance waits for its command
//	settle           record the outcome of a command, by answer, deadline or sweeper
//	outcome          what became of it for its caller: executed, not_executed, failed, unknown
//	waiter           the entry in memory that connects an answer to the caller who waits for it
//	pending entry    the entry in Redis that says which instance waits; a hint, which may be lost
//	report           telemetry as the unit sent it, whole or partial
//	reported state   the latest value of each field of a vehicle, merged by the vehicle's clock
//	snapshot         the reported state in memory; the twin is the vehicle with its snapshot
//	presence         online, standby or offline (the last will), sent for each connection
//	contact          what a unit's messages say about its connection: presence, last seen, gap
//	observation      one message of a unit, before it changes contact and snapshot
//	activity         one entry of the append-only audit log: who did what, with which outcome
//	event            a change that is published to the subscribers of the event stream
//	halt             an operator's stop of all commands of an agency, or of all agencies
//	batcher          joins concurrent calls into one statement (group commit)
//	write-behind     written later, in batches, from memory
//	cache            a copy of a record in memory, with an expiry or a version
//	outbox           what is still to be written, with retries
//
// # Laws
//
// The numbered laws of docs/architecture.md bind all packages; code cites them as
// [LAW-n], and clauses of the vehicle protocol (docs/protocol.md) as [CMD-3].
package telematics
