package simulator

import (
	"time"

	"motorpool/telematics"
)

// Clock is the clock of a car. The zero value is correct.
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

// floorFor is how long an iat is used after it was received. A wrong one, which passed because the
// unit's clock was wrong as well, must not lock the unit out permanently.
const floorFor = 5 * time.Minute

// floor is the earliest possible present time: a time that the fleet signed, plus the time since it
// was received [CMD-9]. The zero value is no such time.
type floor struct {
	issued time.Time // zero: none
	since  time.Time // of the unit's timer, which cannot be set: only its differences count
}

// now returns the floor; the zero time if no time was received, or too long ago.
func (f floor) now(timer time.Time) time.Time {
	passed := timer.Sub(f.since)
	if f.issued.IsZero() || passed >= floorFor {
		return time.Time{}
	}
	return f.issued.Add(passed)
}

// now returns the unit's time: its clock, but not before the floor [CMD-9]. Its messages are dated
// by the clock only.
func (t *turn) now() time.Time { return later(t.at.Clock, t.floor.now(t.at.True)) }

// learn raises the floor to the iat of a command that the fleet signed for this unit. Call it after
// the command was checked: its own iat must not make it fresh. It ignores an iat that is further
// ahead of a valid clock than a clock may be wrong, since the service's clock may be the wrong one.
// So a command that is refused as clock_behind changes nothing.
func (t *turn) learn(c telematics.Claims) {
	believed := t.at.Valid && !c.IssuedAt.After(t.at.Clock.Add(maxAhead))
	if believed && c.IssuedAt.After(t.floor.now(t.at.True)) {
		t.floor = floor{issued: c.IssuedAt, since: t.at.True}
	}
}
