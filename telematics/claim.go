package telematics

import "time"

// Claim is the answer to an attempt to take a lane.
type Claim struct {
	Seq      int64    // of the command, where the lane is ours
	Occupant *Command // open in the lane; nil: the lane is ours
}

// Pending is a command that waits for its answer, and where it waits.
type Pending struct {
	Command  CommandID
	Vehicle  VehicleID
	Unit     Unit
	Instance string
	Deadline time.Time
}
