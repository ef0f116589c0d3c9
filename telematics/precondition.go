package telematics

import "time"

const (
	// MovingKmh is the speed above which a vehicle counts as moving [CMD-7].
	MovingKmh = 5.0
	// FreshFor is the age up to which a reading may stop a command before it is
	// sent. The unit, which knows better, judges everything else.
	FreshFor = 30 * time.Second
)

// Conditional reports whether the vehicle's state may forbid the action.
func (a Action) Conditional() bool { return a.Immobilizes() || a.Opens() }

// Forbids reports why an action must not be sent to a vehicle in this state, or
// nil. Only what fresh readings say counts: a stale one forbids nothing.
func (s Snapshot) Forbids(a Action, now time.Time) *Error {
	reading, reported := s[SpeedKmh]
	if !reported || now.Sub(reading.At) > FreshFor {
		return nil
	}
	speed := s.Number(SpeedKmh)
	blind := speed == nil // a vehicle that says it does not know counts as moving, for the immobilizer
	switch {
	case a.Immobilizes() && (blind || *speed > MovingKmh),
		a.Opens() && !blind && *speed > MovingKmh:
		return Conflict(a, Moving)
	}
	return nil
}
