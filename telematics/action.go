package telematics

import (
	"fmt"
	"slices"
	"time"
)

// Action is what a command orders.
type Action string

const (
	Lock                   Action = "lock"
	Unlock                 Action = "unlock"
	EnableDriving          Action = "enable-driving"            // release the immobilizer
	DisableDriving         Action = "disable-driving"           // engage the immobilizer
	UnlockAndEnableDriving Action = "unlock-and-enable-driving" // hand-over
	LockAndDisableDriving  Action = "lock-and-disable-driving"  // return
	AttentionSignal        Action = "attention"                 // horn, lights or both
	OpenTopCase            Action = "open-top-case"             // top case or battery compartment
	ReportState            Action = "report-state"              // answer with a full report
)

// Lane is what a command occupies while it is open: a vehicle has at most one
// open command in each [LAW-5].
type Lane string

const (
	AccessLane    Lane = "access" // locks and immobilizer
	AttentionLane Lane = "attention"
	TopCaseLane   Lane = "top_case"
	RefreshLane   Lane = "refresh"
	// UnitLane is shared by all commands to a unit whose answers name no command: one at a time.
	UnitLane Lane = "unit"
)

// effect is what an action does to a vehicle that may be moving. Its zero value is none of them:
// each action says.
type effect int

const (
	harmless effect = iota + 1
	opens           // a part of the vehicle
	immobilizes
)

type traits struct {
	action Action
	lane   Lane
	effect effect
}

// actions lists all actions, in the order of the interface.
var actions = []traits{
	{Lock, AccessLane, harmless},
	{Unlock, AccessLane, opens},
	{EnableDriving, AccessLane, harmless},
	{DisableDriving, AccessLane, immobilizes},
	{UnlockAndEnableDriving, AccessLane, opens},
	{LockAndDisableDriving, AccessLane, immobilizes},
	{AttentionSignal, AttentionLane, harmless},
	{OpenTopCase, TopCaseLane, opens},
	{ReportState, RefreshLane, harmless},
}

// ControlActions lists the actions that an administrator can order, in the order of the interface.
var ControlActions = controlActions()

func controlActions() (list []Action) {
	for _, t := range actions {
		if t.action != ReportState { // which the service orders
			list = append(list, t.action)
		}
	}
	return list
}

// traits returns those of an action; the zero value: there is no such action.
func (a Action) traits() traits {
	for _, t := range actions {
		if t.action == a {
			return t
		}
	}
	return traits{}
}

// ParseAction returns the action named s. It fails for an unknown name.
func ParseAction(s string) (Action, error) {
	if Action(s).traits().effect == 0 {
		return "", fmt.Errorf("unknown action %q", s)
	}
	return Action(s), nil
}

// Lane returns the lane that the action occupies.
func (a Action) Lane() Lane { return a.traits().lane }

// Immobilizes reports whether the action engages the immobilizer.
func (a Action) Immobilizes() bool { return a.traits().effect == immobilizes }

// Opens reports whether the action opens a part of the vehicle.
func (a Action) Opens() bool { return a.traits().effect == opens }

// Signal is how a vehicle activates horn or lights.
type Signal string

const (
	Horn   Signal = "horn"
	Lights Signal = "lights"
	Both   Signal = "both"
)

// Signals lists every signal.
var Signals = []Signal{Horn, Lights, Both}

// Limits of an attention pulse. MaxPulse and DefaultPulse are those of the HTTP interface.
const (
	MinPulse     = time.Millisecond
	DefaultPulse = time.Second
	MaxPulse     = 5 * time.Second
)

// Attention holds the parameters of AttentionSignal, the only action that has any.
type Attention struct {
	Signal   Signal
	Duration time.Duration // of one pulse; MinPulse to MaxPulse, whole milliseconds
}

// Validate returns what is wrong with the parameters of an action. Only
// AttentionSignal has, and needs, parameters.
func (a Action) Validate(p *Attention) error {
	switch {
	case a != AttentionSignal && p != nil:
		return fmt.Errorf("%s takes no parameters", a)
	case a != AttentionSignal:
		return nil
	case p == nil:
		return fmt.Errorf("%s needs a signal", a)
	case !slices.Contains(Signals, p.Signal):
		return fmt.Errorf("signal %q: want one of %v", p.Signal, Signals)
	case p.Duration < MinPulse || p.Duration > MaxPulse:
		return fmt.Errorf("duration %v: want %v to %v", Words(p.Duration), Words(MinPulse), Words(MaxPulse))
	case p.Duration%time.Millisecond != 0:
		return fmt.Errorf("duration %v: want whole milliseconds", Words(p.Duration))
	}
	return nil
}

const (
	// MovingKmh is the speed above which a vehicle counts as moving [CMD-7].
	MovingKmh = 5.0
	// FreshFor is the age up to which a reading may stop a command before it is
	// sent. The unit itself checks everything else, with newer values.
	FreshFor = 30 * time.Second
	// ClockTolerance is how far apart the clocks of two instances may be [LAW-11].
	ClockTolerance = 2 * time.Second
)

// Conditional reports whether the vehicle's state may forbid the action.
func (a Action) Conditional() bool { return a.Immobilizes() || a.Opens() }

// Forbids reports why an action must not be sent to a vehicle in this state, or nil [CMD-7]. Two
// speeds count, each for FreshFor: the newest by the unit's clock, and the one that arrived last,
// which a unit whose clock is wrong may have dated earlier.
//
//   - To immobilize, neither may be above MovingKmh or unknown: a vehicle that stops needlessly late
//     is safe.
//   - To open, the newest by the unit's clock decides, since what arrived last may be an old record.
//     Where that is too old, or its time is that of its arrival (its own was later, or none), the
//     one that arrived last decides.
//
// One of the future, which an instance whose clock was ahead has stored, hides the true speed: it
// is not known.
func (s Snapshot) Forbids(a Action, now time.Time) *Error {
	newest, latest := s.speedAt(SpeedKmh, now), s.speedAt(ArrivedSpeed, now)
	decides := newest
	if latest.fresh && !latest.blind &&
		(!newest.fresh || newest.blind || s.Has(SpeedByArrival) && s.Of(SpeedByArrival).At.Equal(s.Of(SpeedKmh).At)) {
		decides = latest
	}
	switch {
	case a.Immobilizes() && (newest.mayMove() || latest.mayMove()),
		a.Opens() && decides.moves():
		return Conflict(a, Moving)
	}
	return nil
}

// speed is what a reading says about whether the vehicle moves now.
type speed struct {
	kmh   float64
	fresh bool // not older than FreshFor
	blind bool // not known
}

func (s Snapshot) speedAt(f Field, now time.Time) speed {
	reading := s.Of(f)
	kmh, known := reading.Value.(float64)
	return speed{
		kmh: kmh, fresh: reading.known() && now.Sub(reading.At) <= FreshFor,
		blind: !known || reading.At.After(now.Add(ClockTolerance)),
	}
}

func (v speed) mayMove() bool { return v.fresh && (v.blind || v.kmh > MovingKmh) }

func (v speed) moves() bool { return v.fresh && !v.blind && v.kmh > MovingKmh }
