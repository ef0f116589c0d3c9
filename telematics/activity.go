package telematics

import (
	"time"

	"github.com/google/uuid"
)

// Names of activities other than commands.
const (
	StatusRead     = "status.read"
	VehiclesRead   = "vehicles.read" // a list of vehicles, with their positions
	CommandsRead   = "commands.read" // commands, with the reports in their answers
	HistoryRead    = "history.read"  // of one vehicle's telemetry, or the track of a booking
	EventsRead     = "events.read"   // from then on, until the stream ends
	BulkOrder      = "commands.bulk" // each of its commands has a separate entry
	CommandsHalt   = "commands.halt"
	CommandsResume = "commands.resume"
	VehicleAdd     = "vehicle.add"
	VehicleChange  = "vehicle.change"
	StationAdd     = "station.add"
	StationChange  = "station.change"
	NoteAdd        = "note.add"      // Activity.Note is the note
	FleetImport    = "fleet.import"  // of a fleet file
	SessionBegin   = "session.begin" // in the console
	SessionEnd     = "session.end"
	// Operators of the built-in sign-in.
	OperatorAdd      = "operator.add"
	OperatorRemove   = "operator.remove"
	OperatorPassword = "operator.password" // was set, or ended
	// AnswerUnrecorded is a unit's answer to a command that is not on record.
	AnswerUnrecorded = "answer.unrecorded"
)

// CommandActivity returns the name of an action in the audit log.
func CommandActivity(a Action) string { return "command." + string(a) }

// Activity is one entry of the audit log. Entries are added, never changed [LAW-9].
type Activity struct {
	ID        int64 // grows with time
	At        time.Time
	Actor     Actor
	Agency    AgencyID // that the entry belongs to; zero: none
	Vehicle   VehicleID
	Booking   int64 // zero: none
	Action    string
	Attention *Attention
	// The parameters of a request other than a command, as JSON values; nil: none.
	Details   map[string]any
	Outcome   Outcome
	Code      Code // of the error; empty: none
	Command   CommandID
	RequestID uuid.UUID
	Latency   time.Duration
	Late      bool   // the command was settled by a late answer
	Note      string // free text from a person; empty: none
}

// Activity returns the audit log entry of a settled command.
func (c Command) Activity() Activity {
	entry := Activity{
		At: c.Completed, Actor: c.Actor, Agency: c.Agency, Vehicle: c.Vehicle, Booking: c.Booking,
		Action: CommandActivity(c.Action), Attention: c.Attention, Outcome: c.State.Outcome(),
		Command: c.ID, RequestID: c.RequestID, Latency: c.Latency(), Late: c.Late,
	}
	if err := c.Err(); err != nil {
		entry.Code = err.Code
	}
	return entry
}

// ActivityQuery selects audit log entries. Zero fields select everything.
type ActivityQuery struct {
	Agency  AgencyID
	Vehicle VehicleID
	Booking int64
	Actor   string // subject
	Action  string
	Outcome Outcome
	Changes bool      // no reads
	From    time.Time // inclusive
	To      time.Time // exclusive
	Page
}
