package simulator

import (
	"time"

	"motorpool/telematics"
)

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

// floorFor is how long an iat counts after it was received. A wrong one, which a clock that was
// wrong as well let pass, must not lock the unit out permanently.
const floorFor = 5 * time.Minute

// floor is the earliest that it can be: a time that the fleet signed, and how long ago it was
// received [CMD-9]. The zero value knows nothing.
type floor struct {
	issued time.Time // zero: none
	since  time.Time // of the unit's timer, which cannot be set: only its differences count
}

// now returns the zero time where no time was received, or too long ago.
func (f floor) now(timer time.Time) time.Time {
	passed := timer.Sub(f.since)
	if f.issued.IsZero() || passed >= floorFor {
		return time.Time{}
	}
	return f.issued.Add(passed)
}

// now is the unit's time: its clock, but not before what was signed earlier [CMD-9]. In its
// messages it gives its clock alone.
func (t *turn) now() time.Time { return later(t.at.Clock, t.floor.now(t.at.True)) }

// learn takes the time from a command that the fleet signed for this unit, once it was judged by
// what was known before: a command's own word must not make it fresh. An iat that is further ahead
// of a valid clock than a clock may be wrong is not believed: the service may be the one that is
// wrong. So what is refused as clock_behind teaches nothing.
func (t *turn) learn(c telematics.Claims) {
	believed := t.at.Valid && !c.IssuedAt.After(t.at.Clock.Add(maxAhead))
	if believed && c.IssuedAt.After(t.floor.now(t.at.True)) {
		t.floor = floor{issued: c.IssuedAt, since: t.at.True}
	}
}
