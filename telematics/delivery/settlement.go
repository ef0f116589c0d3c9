package delivery

import (
	"time"

	"motorpool/telematics"
)

// Settlement is what an answer, or its absence, changes in a command. The record
// applies it only where the lifecycle allows [LAW-3].
type Settlement struct {
	Command  telematics.CommandID
	Unit     telematics.Unit // whose word this is; empty: Motorpool's own finding
	State    telematics.State
	Reason   string
	Detail   string
	Reported *telematics.Report
	At       time.Time // by Motorpool's clock
	// The command as it was claimed, so that it need not be read; nil: not cached here.
	Known    *telematics.Command
	Progress // so far, as it is known here
}

// Progress is how far a command has come on its way to a final answer.
type Progress struct {
	SentAt     time.Time // it was first handed to the MQTT client; zero: it was not
	Attempts   int       // so often
	ReceivedAt time.Time // its unit said first that it has it; zero: it did not
	// When the MQTT client took it again; see telematics.Command. It is not changed, only replaced.
	Retransmitted []time.Time
}

// Note is what is to be stored of a command that is open.
type Note struct {
	Command telematics.CommandID
	Progress
}

// Code returns the code that the settlement has in the history; empty for success.
func (s Settlement) Code() telematics.Code {
	if err := (&telematics.Command{State: s.State, Reason: s.Reason}).Err(); err != nil {
		return err.Code
	}
	return ""
}

// Unrecorded is a final answer to a command that is not on record: what a failover to a standby
// that was behind, or a restore, has lost.
type Unrecorded struct {
	Unit   telematics.Unit
	Answer telematics.Answer
	At     time.Time // when it was received
}

// UnrecordedResult is what became of an answer that may be to a command that is not on record.
type UnrecordedResult struct {
	// The command is not on record, and the answer was not stored before.
	Unknown bool
	// It was stored now; else the unit has had its share of the hour.
	Noted   bool
	Vehicle telematics.VehicleID // of the unit, where Unknown
}

// MaxUnrecorded is how many unrecorded answers of a unit are stored within an hour: the
// history cannot be deleted, and a unit can invent answers. A report repeats at most eight [TEL-3].
const MaxUnrecorded = 16
