package telematics

import (
	"reflect"
	"time"
)

// Change is what observations have changed of one vehicle.
type Change struct {
	Vehicle    VehicleID
	Agency     AgencyID
	Powertrain Powertrain
	Fields     Snapshot       // with a new value; nil: none
	Large      []Field        // likewise, but their values are too large for the log of events
	Presence   PresenceStatus // its new connectivity; empty: as before
	LastSeen   time.Time      // by our clock
}

// Empty reports whether nothing has changed.
func (c Change) Empty() bool { return len(c.Fields) == 0 && c.Presence == "" }

// Same reports whether two values of a field read the same in an answer, which shows
// only the quality of a signal.
func (f Field) Same(a, b any) bool {
	if f == RSRP {
		a, aIs := a.(float64)
		b, bIs := b.(float64)
		return aIs == bIs && (!aIs || *SignalQuality(&a) == *SignalQuality(&b))
	}
	return SameValue(a, b)
}

// IsNews reports whether a vehicle's new values are worth telling. That a position was
// confirmed is not.
func (s Snapshot) IsNews() bool {
	_, confirmed := s[LocatedAt]
	return len(s) > 1 || len(s) == 1 && !confirmed
}

// SameValue reports whether two values of a field are the same.
func SameValue(a, b any) bool {
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
