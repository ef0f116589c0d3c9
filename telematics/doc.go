// Package telematics is the language of the field: vehicles, their telematics
// units, the commands that move them, the state that they report, and the
// protocol in which both are spoken. It holds no connection and does no I/O, so
// that every rule in it can be read, and tested, by itself.
//
// # Glossary
//
//	vehicle     a car, van or scooter of an agency, known by an integer id
//	unit        the telematics unit in it, known by its serial; the only name on the wire
//	command     one order to one vehicle, with a budget of seconds to be answered in
//	lane        what a command occupies: one open command for each vehicle and lane
//	answer      what the unit says about a command: received, succeeded, rejected, failed
//	report      telemetry as the unit sent it, whole or partial
//	snapshot    the latest known state, merged from reports by the vehicle's own clock
//	presence    online, standby or offline (the last will), said for each connection
//	activity    one line of the append-only history of who did what
//
// # Laws
//
// The numbered laws of docs/architecture.md bind all packages; code cites them as
// [LAW-n], and clauses of the vehicle protocol (docs/protocol.md) as [CMD-3].
package telematics
