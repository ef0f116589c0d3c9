package broker

import (
	"sync"
	"time"

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

// recentUnits holds which units have answered unrecorded commands lately. One alone may invent ids;
// several mean that Postgres has lost commands. The zero value is empty. It is safe for concurrent
// use.
type recentUnits struct {
	mu sync.Mutex
	at map[telematics.Unit]time.Time
}

func (r *recentUnits) note(unit telematics.Unit, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[telematics.Unit]time.Time{}
	}
	if _, counted := r.at[unit]; counted || len(r.at) < unrecordedUnits {
		r.at[unit] = now
	}
}

func (r *recentUnits) count(now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for unit, at := range r.at {
		if now.Sub(at) > unrecordedWithin {
			delete(r.at, unit)
		}
	}
	return len(r.at)
}
