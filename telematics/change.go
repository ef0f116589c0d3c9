package telematics

import (
	"maps"
	"reflect"
	"slices"
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

// Advance is Join that tells what it did: the snapshot after, the readings in it whose
// values are other ones than before, and the sections in which anything is newer, be it only
// a time. Neither argument is changed.
func (s Snapshot) Advance(by Snapshot) (after, news Snapshot, sections []string) {
	after = s
	for field, next := range by {
		known, ok := s[field]
		if ok && !next.newerThan(known) {
			continue
		}
		if len(sections) == 0 { // the first that is newer
			if after = maps.Clone(s); after == nil {
				after = make(Snapshot, len(by))
			}
		}
		after[field] = next
		if section := field.Section(); !slices.Contains(sections, section) {
			sections = append(sections, section)
		}
		if ok && sameValue(known.Value, next.Value) {
			continue
		}
		if news == nil {
			news = Snapshot{}
		}
		news[field] = next
	}
	return after, news, sections
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
