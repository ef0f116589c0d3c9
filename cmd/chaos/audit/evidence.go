// Package audit reconciles what four independent witnesses say of the same commands:
// the callers (what HTTP answered), Postgres (the record and the history), Redis
// (what is in flight) and the cars' flight recorders (what was executed, and when). It
// holds their accounts against the laws and tells the whole story of each command that breaks one.
//
// It believes none of them, and knows nothing of how the accounts came about.
package audit

import (
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// Evidence is the four accounts, and what was known to be down.
type Evidence struct {
	Seed     uint64
	Calls    []Call
	Commands []Row
	History  []Line
	Pending  []Entry // in Redis, after everything has settled
	Flights  []simulator.Event
	// Up lists when at least one instance of the service ran and could reach Postgres.
	Up []Interval
	// Tampered lists attempts to change or delete history that were not refused.
	Tampered []string
	// Lanes lists what a watcher of the record saw: moments with two open commands in a lane.
	Lanes []LaneConflict
	// Sampled are lines of the history as they were read while commands ran; they must still be the same.
	Sampled []Line
	// Taken are the messages that a listener on the command topics took from the MQTT broker.
	Taken []Message
	// Reach lists when each instance could reach Postgres, by Call.Instance. An instance without a list is taken to
	// have reached it whenever Up says so.
	Reach map[int][]Interval
	// Halts lists when commands were halted.
	Halts []Halt
	// Agencies says whose each unit is.
	Agencies map[telematics.Unit]telematics.AgencyID
	// Delayed lists when what an instance, by Call.Instance, had handed over could be held up on its way to Mosquitto.
	Delayed map[int][]Interval
	// Clocks lists when the clock of an instance, by Call.Instance, was ahead.
	Clocks map[int][]ClockFault
	// Floods lists when one unit published far more than it may.
	Floods []Flood
	// ClientFlood is what one client's flood has left behind.
	ClientFlood ClientFlood
}

// Halt is a time in which commands were halted.
type Halt struct {
	Agency  telematics.AgencyID // zero: all
	Written time.Time           // by then it was written down
	Lifting time.Time           // until then nobody lifted it
}

// Call is one HTTP call as its caller saw it.
type Call struct {
	RequestID  string // sent by the caller as X-Request-ID
	Key        string // Idempotency-Key; empty: none
	Instance   int
	Vehicle    telematics.VehicleID
	Action     telematics.Action
	Start, End time.Time
	Status     int                  // zero: no answer came (cut, killed, timed out at the caller)
	Code       telematics.Code      // of the error; empty: none
	Outcome    telematics.Outcome   // as answered
	Command    telematics.CommandID // as answered; zero: none
	Replayed   bool                 // Idempotency-Replayed
}

// Row is a command as Postgres has it at the end.
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
	Deadline   time.Time
}

// Line is a line of the history.
type Line struct {
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

// Entry is a key that is left over in Redis.
type Entry struct {
	Key string
	TTL time.Duration // negative: it would stay for ever
}

// Interval is a stretch of true time. A zero To is still going on.
type Interval struct{ From, To time.Time }

// LaneConflict is a lane with more than one open command.
type LaneConflict struct {
	At       time.Time
	Vehicle  telematics.VehicleID
	Lane     telematics.Lane
	Commands []telematics.CommandID
}

// Message is a command as it lay on the MQTT broker.
type Message struct {
	At       time.Time
	Unit     telematics.Unit // of the topic
	Command  telematics.CommandID
	Issued   time.Time // iat
	Expires  time.Time
	Signed   bool // by a key of the fleet
	Retained bool
	Key      string // id of the key that it names
	Echoed   bool   // somebody else published the same, too, before
}
