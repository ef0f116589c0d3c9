package telematics

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Reading is the latest value of a field and the vehicle time at which it was
// reported. Value is nil where the vehicle reported that it no longer knows.
type Reading struct {
	Value any
	At    time.Time
	// Once is set if Value is nil and there was a value before: the vehicle has a sensor for it.
	Once bool
	// Undated is set if the message had no time: At is the arrival of the first message
	// with this value. Another message with the same value may be a repetition.
	Undated bool
}

// Ever reports whether the field has ever had a value.
func (r Reading) Ever() bool { return r.Value != nil || r.Once }

// known reports whether there is a reading.
func (r Reading) known() bool { return !r.At.IsZero() || r.Ever() }

// Snapshot is the latest known state of a vehicle: readings by their fields, and zero for a field
// that was never reported. Nil is the state of a vehicle that has reported nothing; a shorter
// snapshot lacks the fields beyond it.
type Snapshot []Reading

// NewSnapshot returns a snapshot without readings, to be changed by KeepNewer or by Field.
func NewSnapshot() Snapshot { return make(Snapshot, fieldCount) }

// Of returns the reading of a field; zero: it was never reported.
func (s Snapshot) Of(f Field) Reading {
	if int(f) >= len(s) {
		return Reading{}
	}
	return s[f]
}

// Has reports whether a field was reported.
func (s Snapshot) Has(f Field) bool { return s.Of(f).known() }

// All returns the fields that were reported.
func (s Snapshot) All() iter.Seq2[Field, Reading] {
	return func(yield func(Field, Reading) bool) {
		for i := range s {
			if s[i].known() && !yield(Field(i), s[i]) {
				return
			}
		}
	}
}

// Empty reports whether no field was reported.
func (s Snapshot) Empty() bool {
	for range s.All() {
		return false
	}
	return true
}

// Len returns how many fields were reported.
func (s Snapshot) Len() (n int) {
	for range s.All() {
		n++
	}
	return n
}

// String lists the fields that were reported.
func (s Snapshot) String() string { return fmt.Sprint(maps.Collect(s.All())) }

// Clone returns a copy, to be changed.
func (s Snapshot) Clone() Snapshot {
	c := NewSnapshot()
	copy(c, s)
	return c
}

// Merge returns the snapshot after a report. Vehicle time decides, never
// the order of arrival [LAW-7]: each field keeps the newest reading, so any order
// and any repetition of the same reports ends in the same snapshot. Neither
// argument is changed. Undated readings are an exception: if one overtakes another, the older value
// stays until the next reading. The result is nil where there is nothing to keep.
func Merge(s Snapshot, r Report) Snapshot {
	if len(s)+len(r.Values) == 0 {
		return nil
	}
	merged := s.Clone()
	merged.Keep(r.Readings())
	return merged
}

// Join returns the newest reading of each field of two snapshots. It is commutative,
// associative and idempotent, and follows the rule of Merge: joining what two instances merged
// separately gives what one instance would have merged. Neither argument is changed. It is nil for
// two that are.
func Join(a, b Snapshot) Snapshot {
	if len(a)+len(b) == 0 {
		return nil
	}
	joined := a.Clone()
	joined.Keep(b.All())
	return joined
}

// Keep is KeepNewer for each of some readings.
func (s Snapshot) Keep(readings iter.Seq2[Field, Reading]) {
	for field, reading := range readings {
		s.KeepNewer(field, reading)
	}
}

// KeepNewer keeps the newer of a reading and the field's current one, and whether there ever was a
// value. It reports whether s has changed, and whether the field has another value now. All merging
// uses this rule; the order of calls does not matter. It changes s: clone a snapshot that others
// read before.
func (s Snapshot) KeepNewer(f Field, next Reading) (newer, changed bool) {
	known := s[f]
	switch {
	case !known.known():
	case next.Undated && known.Undated && f.Same(known.Value, next.Value):
		if next.At.Before(known.At) {
			s[f] = next
		}
		return next.At.Before(known.At), false
	case next.newerThan(known):
		next.Once = next.Value == nil && (next.Once || known.Ever())
	case next.Ever() && !known.Ever():
		known.Once = true
		s[f] = known
		return true, false
	default:
		return false, false
	}
	s[f] = next
	return true, !known.known() || !f.Same(known.Value, next.Value)
}

// newerThan orders readings of one field. Two of the same instant are ordered by
// their JSON text: an arbitrary order, but the same in every instance.
func (r Reading) newerThan(other Reading) bool {
	if !r.At.Equal(other.At) {
		return r.At.After(other.At)
	}
	return !repeats(r.Value, other.Value) && r.encoded() > other.encoded()
}

// repeats reports, without encoding them, whether two values certainly have the same JSON text, as
// most values of the same instant do.
func repeats(a, b any) bool {
	switch a := a.(type) {
	case string, bool, time.Time, nil:
		return a == b
	case float64:
		return a == b && a != 0 // zero has two texts
	case []string:
		b, ok := b.([]string)
		return ok && len(a) > 0 && slices.Equal(a, b) // an empty list has two texts
	}
	return false
}

func (r Reading) encoded() string {
	b, err := json.Marshal(r.Value)
	if err != nil { // never for the types of ParseValue
		return ""
	}
	return string(b)
}

// Number returns a numeric field, or nil where it is not known.
func (s Snapshot) Number(f Field) *float64 { return value[float64](s, f) }

// Text returns a textual field, or nil where it is not known.
func (s Snapshot) Text(f Field) *string { return value[string](s, f) }

// Flag returns a boolean field, or nil where it is not known.
func (s Snapshot) Flag(f Field) *bool { return value[bool](s, f) }

// Time returns a field that is an instant, or nil where it is not known.
func (s Snapshot) Time(f Field) *time.Time { return value[time.Time](s, f) }

// Texts returns a field that is a list, or nil where it is not known.
func (s Snapshot) Texts(f Field) []string {
	if list := value[[]string](s, f); list != nil {
		return *list
	}
	return nil
}

func value[T any](s Snapshot, f Field) *T {
	v, ok := s.Of(f).Value.(T)
	if !ok {
		return nil
	}
	return &v
}

// OEM returns the manufacturer's data, with the values that do not fit their field of the
// interface; never nil.
func (s Snapshot) OEM() map[string]any {
	data := map[string]any{}
	if own := value[map[string]any](s, OEMData); own != nil {
		maps.Copy(data, *own)
	}
	if raw := s.Text(RawCharging); raw != nil {
		data["charging_status"] = *raw
	}
	if raw := s.Texts(RawDTCs); len(raw) > 0 {
		data["dtcs_raw"] = raw
	}
	return data
}

// SectionTimes returns the newest vehicle time of each section. A section
// that was never reported is absent.
func (s Snapshot) SectionTimes() map[string]time.Time {
	times := make(map[string]time.Time, len(Sections))
	for field, reading := range s.All() {
		if field.IsOfArrival() || field.IsRaw() && reading.Value == nil {
			continue // null only means that the value of its field fits the interface
		}
		section := field.Section()
		if reading.At.After(times[section]) {
			times[section] = reading.At
		}
	}
	return times
}

// Older returns the vehicle time of each field that has a value and is older than its section.
func (s Snapshot) Older() map[Field]time.Time {
	sections := s.SectionTimes()
	older := map[Field]time.Time{}
	for field, reading := range s.All() {
		if !field.IsOfArrival() && reading.Value != nil && reading.At.Before(sections[field.Section()]) {
			older[field] = reading.At
		}
	}
	return older
}

// Without returns the snapshot without some readings. If there are none of these, it returns s
// itself.
func (s Snapshot) Without(isDropped func(Field, Reading) bool) Snapshot {
	kept, copied := s, false
	for field, reading := range s.All() {
		if !isDropped(field, reading) {
			continue
		}
		if !copied {
			kept, copied = s.Clone(), true
		}
		kept[field] = Reading{}
	}
	return kept
}

// Since is Without for the readings from before a time.
func (s Snapshot) Since(begin time.Time) Snapshot {
	return s.Without(func(_ Field, r Reading) bool { return r.At.Before(begin) })
}

// For is Without for the fields that a vehicle of this powertrain cannot have.
func (s Snapshot) For(p Powertrain) Snapshot {
	return s.Without(func(f Field, _ Reading) bool {
		return !p.Burns() && f == FuelLevel || !p.PlugsIn() && slices.Contains(ofPlugs, f)
	})
}

var ofPlugs = []Field{Battery, Charging, RawCharging}
