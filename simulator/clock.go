package simulator

import "time"

// Clock is the clock of a car. The zero value is right.
type Clock struct {
	Skew  time.Duration // how far it runs ahead; negative: behind
	Unset bool          // it has lost the time, as after a flat battery, and says 1970
}

// Moment is one instant, in truth and by the clock of a car.
type Moment struct {
	True  time.Time
	Clock time.Time
	Valid bool // the clock is set
}

// Read returns the moment at a true instant.
func (c Clock) Read(at time.Time) Moment {
	if c.Unset {
		return Moment{True: at, Clock: time.Unix(0, 0).UTC()}
	}
	return Moment{True: at, Clock: at.Add(c.Skew).UTC(), Valid: true}
}
