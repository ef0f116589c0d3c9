package telematics

import (
	"reflect"
	"time"
)

// Seen is what observations have led to.
type Seen struct {
	Unknown []Unit   // that belong to no vehicle, each once
	Changes []Change // in the sight of everybody

	Ghosts    int // last wills of older connections, which did not count [PRE-1]
	Overtaken int // other presence that was older than what is known, and did not count [PRE-1]
}

// Change is what observations have changed of one vehicle.
type Change struct {
	Vehicle    VehicleID
	Agency     AgencyID
	Powertrain Powertrain
	Fields     Snapshot       // with a new value; nil: none
	Presence   PresenceStatus // its new connectivity; empty: as before
	LastSeen   time.Time      // by our clock
}

// Empty reports whether nothing has changed.
func (c Change) Empty() bool { return len(c.Fields) == 0 && c.Presence == "" }

// Since returns the readings whose values are other ones than before. A reading that only
// confirms what was known is none of them.
func (s Snapshot) Since(before Snapshot) Snapshot {
	var news Snapshot
	for field, reading := range s {
		if known, ok := before[field]; ok && sameValue(known.Value, reading.Value) {
			continue
		}
		if news == nil {
			news = Snapshot{}
		}
		news[field] = reading
	}
	return news
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case float64, string, bool, nil:
		return a == b
	case time.Time:
		b, ok := b.(time.Time)
		return ok && a.Equal(b)
	default: // lists and objects
		return reflect.DeepEqual(a, b)
	}
}
