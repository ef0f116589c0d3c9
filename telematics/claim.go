package telematics

import "time"

// Claim is the answer to an attempt to take a lane.
type Claim struct {
	Seq      int64     // of the command, where the lane is ours; else zero
	Occupant *Command  // open in the lane
	KeyTaken bool      // the idempotency key was used already, and nothing was written
	At       time.Time // by the record's clock, where the lane is ours; zero: not known
}

// Taken reports whether the lane is ours.
func (c Claim) Taken() bool { return c.Seq != 0 && c.Occupant == nil }

// Pending is a command that waits for its answer, and where it waits.
type Pending struct {
	Command  CommandID
	Vehicle  VehicleID
	Unit     Unit
	Instance string
	Deadline time.Time
}
