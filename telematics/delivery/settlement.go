package delivery

import (
	"time"

	"motorpool/telematics"
)

// Settlement is what an answer, or its absence, changes in a command. The store
// applies it only where the lifecycle allows [LAW-3].
type Settlement struct {
	Command  telematics.CommandID
	Unit     telematics.Unit // that answered; empty: Motorpool settles it without an answer
	State    telematics.State
	Reason   string
	Detail   string
	Reported *telematics.Report
	At       time.Time // by Motorpool's clock
	// The command as it was claimed, so that the store need not read it; nil: not cached here.
	Known    *telematics.Command
	Progress // as far as this instance knows it
}

// Progress is how far a command has come on its way to a final answer.
type Progress struct {
	SentAt     time.Time // first accepted by the MQTT client; zero: never
	Attempts   int       // how often the MQTT client accepted it
	ReceivedAt time.Time // of the unit's first received answer; zero: none
	// See telematics.Command. The slice is replaced, never changed in place.
	Retransmitted []time.Time
}

// Note is the progress to be stored for an open command.
type Note struct {
	Command telematics.CommandID
	Progress
}

// Code returns the error code of the settlement for the audit log; empty for success.
func (s Settlement) Code() telematics.Code {
	if err := (&telematics.Command{State: s.State, Reason: s.Reason}).Err(); err != nil {
		return err.Code
	}
	return ""
}

// Unrecorded is a final answer to a command that Postgres does not have: a failover to a standby
// that lagged, or a restore, has lost it.
type Unrecorded struct {
	Unit   telematics.Unit
	Answer telematics.Answer
	At     time.Time // when it was received
}

// UnrecordedResult is the result of storing an answer whose command may be missing in Postgres.
type UnrecordedResult struct {
	// The command is missing, the unit has a vehicle, and the answer was not stored before.
	Unknown bool
	// It was stored now; false, with Unknown: the unit has reached MaxUnrecorded, or another
	// instance has just stored it.
	Noted   bool
	Vehicle telematics.VehicleID // of the unit, where Unknown
}

// MaxUnrecorded is how many unrecorded answers of a unit are stored within an hour: the audit
// log cannot be deleted, and a unit can make up answers. A report repeats at most eight [TEL-3].
const MaxUnrecorded = 16
