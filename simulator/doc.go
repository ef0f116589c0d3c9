// Package simulator is the world outside: cars whose telematics units speak protocol v1 in full, over radios and with
// bodies that fail in every way that real ones do. Nothing in it is a stand-in for the service; the service cannot tell
// these cars from others.
//
//	              Car: one goroutine owns all of it
//	┌──────────────────────────────────────────────────────────────┐
//	│  Radio ◄──► air ◄──────────► Unit ──────► Body               │
//	│  MQTT       latency, loss,   checks,      doors, immobilizer,│
//	│             order            lanes, Log   motion, energy     │
//	└───────────────────────────────│──────────────────────────────┘
//	                            Recorder (what was executed, and when)
//
// Unit, air and Body are pure: an instant and a message go in, what follows comes out. Car owns time and the connection.
// Fleet runs any number of cars; Demo knows the ten that each teach one outcome.
//
// A car is made to disobey by its Faults, and to be wrong about the time by its Clock. Everything else in it obeys the
// protocol to the letter: lines that fulfil a clause cite it, as [CMD-5].
package simulator
