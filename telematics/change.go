package telematics

import (
	"reflect"
	"time"
)

// Seen is what observations have led to.
type Seen struct {
	Unknown []Unit   // that belong to no vehicle, each once
	Foreign []Unit   // that spoke another protocol than their record names, each once; nothing of it counts
	Changes []Change // in the sight of everybody
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

// Newer returns the readings that would replace, or add to, those of another snapshot.
func (s Snapshot) Newer(than Snapshot) Snapshot {
	var newer Snapshot
	for field, reading := range s {
		if known, ok := than[field]; ok && !reading.newerThan(known) {
			continue
		}
		if newer == nil {
			newer = make(Snapshot, len(s))
		}
		newer[field] = reading
	}
	return newer
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
