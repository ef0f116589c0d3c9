package simulator

import (
	"time"

	"motorpool/telematics"
)

// maxTaught is how far ahead of the unit's own clock an iat is believed. A service that is wrong by more must not silence
// a unit for good; and no connection holds a command back for so long.
const maxTaught = 5 * time.Minute

// floor is the earliest that it can be: a time that the fleet signed, and how long ago that was [CMD-9]. The zero value
// knows nothing.
type floor struct {
	told  time.Time // zero: none
	since time.Time // of the unit's timer, which nobody can set: only its differences count
}

func (f floor) now(timer time.Time) time.Time {
	if f.told.IsZero() {
		return time.Time{}
	}
	return f.told.Add(timer.Sub(f.since))
}

// now is what the unit goes by: its clock, but not before what was signed earlier [CMD-9]. In its messages it gives its
// clock alone.
func (t *turn) now() time.Time { return later(t.at.Clock, t.floor.now(t.at.True)) }

// learn takes the time from a command that the fleet signed for this unit, once it was judged by what was known before:
// a command's own word must not make it fresh.
func (t *turn) learn(c telematics.Claims) {
	believed := t.at.Valid && !c.IssuedAt.After(t.at.Clock.Add(maxTaught))
	if believed && c.IssuedAt.After(t.floor.now(t.at.True)) {
		t.floor = floor{told: c.IssuedAt, since: t.at.True}
	}
}
