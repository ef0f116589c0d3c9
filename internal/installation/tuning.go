package installation

import "time"

const (
	// every is the interval of beats and claims; a choice. Half doubles the writes of an idle
	// instance; double shows a database that takes no writes 1 s later.
	every = time.Second
	// undecidedEvery is the same until each place is decided: an instance that starts is ready
	// soon. Half doubles the load of a start; double delays it.
	undecidedEvery = 100 * time.Millisecond
	// connectsWithin is how long after the start a place that is not connected yet counts as
	// undecided: a connection takes some 50 ms, and longer on a busy machine. Half: there, an
	// instance is ready 1 s later. Double: one that starts in an outage writes 20 more beats.
	connectsWithin = 2 * time.Second
	// writtenWithin is how long one beat proves that the database takes writes: three intervals,
	// so that one that fails on a busy machine changes nothing. Half would count it; double is
	// ready for 3 s more without a database.
	writtenWithin = 3 * time.Second
	// hangs is how long a write may take before it is called waiting; a choice, above that of a
	// busy server. It changes only the text of an error.
	hangs = 500 * time.Millisecond
	// exchangeWithin is how long a place may take for one exchange. A beat waits for it, so it must
	// leave time within writtenWithin. Half fails on a busy Redis; double makes an instance not
	// ready while Redis is frozen.
	exchangeWithin = time.Second
	// maxUnjudged is how many claims are kept until the next beat: those of a hundred instances for
	// ten seconds. Half loses claims of a larger installation, which are repeated; double: memory.
	maxUnjudged = 1000

	// expires is how long a claim may be repeated by a place after its instance has ended: Redis
	// keeps it for that long. Half loses claims to pauses of a busy machine; double makes an
	// installation whose database lost commits wait longer.
	expires = 10 * time.Second
	// provenBy is how long two installations announce the same place before the younger one
	// gives it up: a beat that a failover has lost is replaced by then. Half gives up too soon;
	// double takes answers from the other for longer.
	provenBy = 3 * time.Second
	// lead is the number of beats that a copy of the database may have of an instance that were
	// not announced yet: one, and one more while it is being written. Half: a copy believes to
	// have had the place for as long as the original. Double: nothing.
	lead = 2
	// withdrawals is how often an instance says that it gives a place up, once a second. Half may
	// be lost with a connection; double keeps a copy's claim at Redis hidden for longer.
	withdrawals = 5
	// silence is how long the other installation must be silent before one that was refused
	// takes its place: longer than an upgrade with all instances stopped. Half gives a
	// production's place to a copy in a shorter pause; double makes who stopped the other one
	// wait, or restart this one.
	silence = 10 * time.Minute
)
