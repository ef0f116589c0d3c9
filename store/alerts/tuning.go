package alerts

import (
	"time"

	"motorpool/telematics"
)

const (
	// sweepEvery is the interval of sweeps. Half: twice the load on Postgres; double: what opens
	// immediately opens later.
	sweepEvery = 5 * time.Second
	// sweepShare: sweeps may take 1/n of the time. Where Postgres is slow, or the fleet is large,
	// alerts open later.
	sweepShare = 4
	// LeaseFor is how long an instance has the sweeps for itself. Half: two instances sweep where
	// one sweep is slow; double: the next one begins later when an instance has died.
	LeaseFor = 2 * sweepEvery
	// seldomEvery is the interval of what reads the audit log, or the commands of a day. Half: they
	// are read twice as often.
	seldomEvery = time.Minute
	// troublesWithin is the age of commands that other sweeps read, by their request. Half: an
	// answer that comes late opens an alert up to seldomEvery later. Double: more are read.
	troublesWithin = 10 * time.Minute
	// Vehicles whose inputs one statement renews. Half: more statements after a start; double: one
	// may take as long as a statement may.
	inputsBatch = 5000
	// checkAllEvery is the interval of a check of all positions, of what another instance that
	// failed has read. Double: such a vehicle is judged by the areas where it was for longer.
	checkAllEvery = 10 * time.Minute

	// alarmsKept is how many alarms of units wait for Postgres. Double: more memory.
	alarmsKept = 4096
	// alarmsBatch is how many are written in one statement. Double: locks are held for longer.
	alarmsBatch = 256
	// alarmsRetry is the pause before a failed write of alarms is tried again.
	alarmsRetry = time.Second
	// maxKinds is how many kinds of alarms an open alert has before it gets no other. Half: the
	// latest alarm of a unit that has many is not shown; double: a row of up to 8 KB.
	maxKinds = 32
	// repeatedFor is for how long an alarm that a unit repeats after it was acknowledged opens no
	// other alert. Half: a message that comes twice may open it again; double: a second tow is
	// missed.
	repeatedFor = time.Minute

	// A state is in Postgres within storedWithin after the report.
	storedWithin = telematics.OnlineFor/2 + time.Minute
	// unlookedFor is the pause between two sweeps after which this instance, or its machine, was
	// suspended. Half: sweeps of a slow Postgres count as such, and no silence is noticed. Double:
	// a pause as long as that shows in every vehicle.
	unlookedFor = storedWithin / 2
	// usualGap is the interval of reports of a unit of which it is not known.
	usualGap = telematics.OnlineFor / 2
	// confirmedWithin is for how long a condition about a position that no second report confirms
	// has to hold, at least. Half: a wrong position opens an alert before the next report corrects
	// it; double: a vehicle that is carried away and falls silent is looked for later.
	confirmedWithin = 2 * time.Minute
	// driftMetres is how far the positions of a parked vehicle are apart that need no confirmation,
	// as in twins.urgentMetres.
	driftMetres = 25
	// deafAfter is after how many commands without a sign of reception a unit is deaf.
	deafAfter = 3
	// unknownFor is how long a charge may be unknown, or wait for its client.
	unknownFor = time.Hour
	// accessWithin is the time in which the vehicles are counted that a person opens or locates.
	accessWithin = time.Hour
	// otherFixAfter: a fix that is so much older than the report of its position, or confirms it so
	// much later, counts by its time.
	otherFixAfter = time.Minute
)
