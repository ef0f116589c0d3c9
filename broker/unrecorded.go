package broker

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/broker/ingest"
	"motorpool/telematics"
)

const (
	// unrecordedWithin is the time for which a unit counts that answered an unrecorded command.
	// Half: the alert ends while units still come back; double: two units an hour apart look like a
	// failover.
	unrecordedWithin = 10 * time.Minute
	// unrecordedUnits bounds the counted units: beyond some, it is a failover anyway.
	unrecordedUnits = 1000
)

// recentUnits are units that have answered unrecorded commands, and when. One alone may invent ids;
// several mean that Postgres has lost commands.
type recentUnits struct {
	*lru.Cache[telematics.Unit, time.Time]
}

func newRecentUnits() recentUnits {
	return recentUnits{ingest.NewCache[telematics.Unit, time.Time](unrecordedUnits)}
}

// count returns how many units have done so within unrecordedWithin.
func (r recentUnits) count(now time.Time) (n int) {
	for _, at := range r.Values() {
		if now.Sub(at) <= unrecordedWithin {
			n++
		}
	}
	return n
}
