// Package audit compares four independent accounts of the same commands: the callers' (HTTP
// answers), Postgres's (commands and audit log), Redis's (pending commands) and the cars' flight
// recorders' (executions, by true time). It checks them against the laws, and prints the timeline
// of each command that violates one.
//
// It trusts none of them, and does not depend on how they were collected.
package audit

import (
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// Evidence is the four accounts, and the times of faults.
type Evidence struct {
	Calls    []Call
	Commands []Row
	AuditLog []LogEntry
	Pending  []RedisKey // in Redis, after everything has settled
	Flights  []simulator.Event
	// Up lists when at least one instance of the service ran and could reach Postgres.
	Up []Interval
	// Tampered lists attempts to change or delete audit log entries that were not refused.
	Tampered []string
	// Lanes lists times with two open commands in a lane, as read from Postgres.
	Lanes []LaneConflict
	// Sampled are audit log entries as they were read while commands ran; they must still be the
	// same.
	Sampled []LogEntry
	// Published are the messages that a listener received on the command topics.
	Published []Message
	// Reach lists when each instance could reach Postgres, by Call.Instance. Up applies to an
	// instance without a list.
	Reach map[int][]Interval
	// Halts lists when commands were halted.
	Halts []Halt
	// Agencies is the agency of each unit.
	Agencies map[telematics.Unit]telematics.AgencyID
	// Delayed lists when messages of an instance, by Call.Instance, to Mosquitto could be delayed.
	Delayed map[int][]Interval
	// Clocks lists when the clock of an instance, by Call.Instance, or of All was wrong.
	Clocks map[int][]ClockFault
	// Floods lists when one unit published far more than it may.
	Floods []Flood
	// ClientFlood is the result of one client's flood.
	ClientFlood ClientFlood
	// Others are the vehicles whose units do not speak protocol v1.
	Others map[telematics.VehicleID]Installed
	// Intrusions lists what an intruder published to them.
	Intrusions []Intrusion
	// Ready lists when each instance, by Call.Instance, said that it is ready. Nil: not judged.
	Ready map[int][]Interval
	// Sound are the vehicles that execute their commands, with a good radio.
	Sound map[telematics.VehicleID]bool
	// Locks lists when another client held locks in Postgres.
	Locks []Lock
	// Backends are the connections of the service to Postgres.
	Backends Backends
	// Presence is what the broker retains of units, and what is recorded.
	Presence []PresenceOf
	// Shown is what lists, the map and statuses showed, in a round in which no clock is wrong.
	Shown []Shown
	// Months is where rows are after the end of a month. Nil: not judged.
	Months *Months
	// Unbroken are vehicles whose commands must all be executed, since a time. Nil: not judged.
	Unbroken map[telematics.VehicleID]time.Time
	// Unrecorded are commands that are not on record, and whose answers are. Nil: no commits were
	// lost.
	Unrecorded map[telematics.CommandID]bool
	// Foreign lists when an instance had another signing key than the others.
	Foreign []Interval
	// Stalls lists when the machine stalled.
	Stalls []Interval
	// Redelivered lists when answers could be delivered twice.
	Redelivered []Interval
}

// Halt is a time in which commands were halted.
type Halt struct {
	Agency  telematics.AgencyID // zero: all
	Written time.Time           // by then it was stored
	Lifting time.Time           // until then it was not lifted
}

// Call is one HTTP call with its answer.
type Call struct {
	RequestID  string // sent by the caller as X-Request-ID
	Key        string // Idempotency-Key; empty: none
	Instance   int
	Vehicle    telematics.VehicleID
	Action     telematics.Action
	Start, End time.Time
	Status     int                  // zero: no answer came
	Code       telematics.Code      // of the error; empty: none
	Outcome    telematics.Outcome   // as answered
	Command    telematics.CommandID // as answered; zero: none
	Replayed   bool                 // Idempotency-Replayed
	// Patience is for how long the caller waits; zero: longer than any command takes.
	Patience time.Duration
}

// Row is a command in Postgres at the end.
type Row struct {
	ID         telematics.CommandID
	Vehicle    telematics.VehicleID
	Unit       telematics.Unit
	Action     telematics.Action
	Lane       telematics.Lane
	Seq        int64
	State      telematics.State
	Late       bool
	Attempts   int
	RequestID  string
	Requested  time.Time
	SentAt     time.Time // zero: never
	ReceivedAt time.Time
	Completed  time.Time
	latest     time.Time // the latest time at which it can have been completed
	Deadline   time.Time
	// A report after the deadline contradicts an execution of the command.
	Contradicted bool
}

// LogEntry is an entry of the audit log.
type LogEntry struct {
	ID        int64
	At        time.Time
	Vehicle   telematics.VehicleID
	Action    string
	Outcome   telematics.Outcome
	Code      telematics.Code
	Command   telematics.CommandID // zero: none
	RequestID string
	Late      bool
}

// RedisKey is a key in Redis at the end.
type RedisKey struct {
	Key string
	TTL time.Duration // negative: none
}

// Interval is an interval of true time. If To is zero, it has not ended.
type Interval struct{ From, To time.Time }

// LaneConflict is a lane with more than one open command.
type LaneConflict struct {
	At       time.Time
	Vehicle  telematics.VehicleID
	Lane     telematics.Lane
	Commands []telematics.CommandID
}

// Message is a command as published at the MQTT broker.
type Message struct {
	At       time.Time
	Unit     telematics.Unit // of the topic
	Command  telematics.CommandID
	Issued   time.Time // iat
	Expires  time.Time
	Signed   bool // by a key of the fleet
	Retained bool
	Key      string // id of the key that it names
	Echoed   bool   // an intruder published the same before
	Payload  string // of a protocol other than v1
}
