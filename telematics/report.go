package telematics

import "time"

// Report is what a vehicle said about itself at one moment, whole or in part.
type Report struct {
	At time.Time // by the unit's clock, in milliseconds [TEL-2]
	// Values holds what was reported, in the types of ParseValue. A field that is
	// absent was not reported; nil means no longer known [TEL-1].
	Values map[Field]any
	// Answers repeats the final answers of the unit's latest commands [TEL-3].
	Answers []Answer
}

// MaxAhead is how far a unit's clock may run before ours: a report from further
// ahead, or from before 2020, is taken with the receiver's time [TEL-5].
const MaxAhead = 5 * time.Minute

var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// plausible reports whether a unit's time can be true.
func plausible(at, received time.Time) bool {
	return !at.Before(earliest) && !at.After(received.Add(MaxAhead))
}

// vehicleTime returns the unit's time at, or the receiver's where at cannot be true.
func vehicleTime(at, received time.Time) time.Time {
	if !plausible(at, received) {
		at = received
	}
	return at.UTC().Truncate(time.Millisecond)
}
