package telematics

import "time"

// Unrecorded is a final answer to a command that is not on record: what a failover to a standby that was behind, or a restore, has lost.
type Unrecorded struct {
	Unit   Unit
	Answer Answer
	At     time.Time // when it was received
}

// UnrecordedFate says what became of an answer that may be to a command that is not on record.
type UnrecordedFate struct {
	Unknown bool      // the command is not on record, and the answer was not written down before
	Noted   bool      // it was written down now; else the unit has had its share of the hour
	Vehicle VehicleID // of the unit, where Unknown
}

// MaxUnrecorded is how many unrecorded answers of a unit are written down within an hour: the history cannot be deleted, and a unit can
// invent answers. A report repeats at most eight [TEL-3].
const MaxUnrecorded = 16
