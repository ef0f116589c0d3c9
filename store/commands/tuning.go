package commands

import (
	"time"

	"motorpool/telematics"
)

const (
	// Age at which a settled command leaves the table of open ones: idempotency keys refer to it
	// for telematics.KeptFor, and are removed some minutes later; and instances of the previous
	// version do not find it there, so an upgrade has a day. Half: commands with a key are passed
	// over repeatedly. Double: the table, which claims keep in memory, is twice as large.
	movedAfter = telematics.KeptFor + 2*time.Hour
	// Age from which an answer that changes nothing may be to a command that has moved. Half: more
	// queries for such answers. Double: it misses some, by the difference of clocks.
	maybeMovedAfter = movedAfter / 2
	// How far the time of a command's id may be from the time of its request: the difference
	// between the clock of an instance and that clock corrected. Half: a list by time may miss
	// commands of an instance whose clock is wrong by a minute. Double: it reads a minute more.
	idTolerance = 2 * time.Minute
	// Commands that one statement moves: 43 million a day for an instance that moves a batch each
	// second; a choice. Half: a fleet of a million vehicles needs several instances for it. Double:
	// other commits wait longer for the disk behind it.
	movedBatch = 500
)
