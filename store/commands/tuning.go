package commands

import (
	"time"

	"motorpool/telematics"
)

const (
	// Age at which a settled command leaves the table of open ones: idempotency keys refer to it
	// for telematics.KeptFor, and are removed some minutes later. Instances of the previous version
	// do not find it after that, so an upgrade has a day. Half: commands with a key are passed over
	// repeatedly. Double: the table, which claims keep in memory, is twice as large.
	movedAfter = telematics.KeptFor + 2*time.Hour
	// Age of a command from which an answer that settles nothing is tried on the moved commands.
	// Half: more queries for such answers. Double: it misses some, by the difference of clocks.
	maybeMovedAfter = movedAfter / 2
	// Greatest difference between the time in a command's id and the time of its request. Both are
	// by the instance's clock, which may be set in between; and an order that is accepted anew gets
	// a later id with the time of its first request. Half: a list by time may miss a command where
	// the clock was set by more than a minute between the two. Double: it reads 2 minutes more at
	// each end.
	idTolerance = 2 * time.Minute
	// Commands that one statement moves: 43 million a day for an instance that moves a batch each
	// second; a choice. Half: a fleet of a million vehicles needs several instances for it. Double:
	// other commits wait longer for the disk behind it.
	movedBatch = 500
)
