package rental

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// TransitionID identifies a transition. Ids grow with time.
type TransitionID = uuid.UUID

// TransitionKind is what a transition does with a rental.
type TransitionKind string

const (
	StartRental  TransitionKind = "start"  // pay, open the vehicle, enable driving
	PauseRental  TransitionKind = "pause"  // lock, and keep the vehicle
	ResumeRental TransitionKind = "resume" // unlock
	EndRental    TransitionKind = "end"    // lock, disable driving, charge what is left
)

// TransitionKinds lists every kind.
var TransitionKinds = []TransitionKind{StartRental, PauseRental, ResumeRental, EndRental}

// TransitionState is the state of a transition: open → done, or open → failed.
type TransitionState string

const (
	TransitionOpen   TransitionState = "open"
	TransitionDone   TransitionState = "done"
	TransitionFailed TransitionState = "failed" // the booking is as before
)

// TransitionStep is what a transition does now.
type TransitionStep string

const (
	StepCheck   TransitionStep = "check"   // before there is a transition
	StepPay     TransitionStep = "pay"     // waits for the payment, and for the hold of the deposit
	StepCommand TransitionStep = "command" // waits for the vehicle
	StepConfirm TransitionStep = "confirm" // it is not known whether the vehicle executed it
	StepBook    TransitionStep = "book"    // writes the booking
	StepUndo    TransitionStep = "undo"    // locks a vehicle that may have opened
	StepRefund  TransitionStep = "refund"  // takes the payments of the start back
)

// transitionSteps are the steps of a transition that succeeds, in their order.
var transitionSteps = map[TransitionKind][]TransitionStep{
	StartRental:  {StepCheck, StepPay, StepCommand, StepBook},
	PauseRental:  {StepCheck, StepCommand, StepBook},
	ResumeRental: {StepCheck, StepCommand, StepBook},
	EndRental:    {StepCheck, StepCommand, StepBook},
}

// Transition starts, pauses, resumes or ends a rental. Its row is the job that does so, and
// survives the process that began it. A booking has at most one open transition.
type Transition struct {
	ID         TransitionID
	Booking    BookingID
	Vehicle    telematics.VehicleID // of the booking
	Kind       TransitionKind
	State      TransitionState
	Step       TransitionStep
	By         telematics.Actor
	Requested  time.Time
	Ended      time.Time // zero: it is open
	NeedsStaff bool      // a person should look at it
	Lease      uuid.UUID // of its worker
	Progress
}

// TransitionRequest is a caller's request for a transition.
type TransitionRequest struct {
	Request
	Kind     TransitionKind
	Position *telematics.Position // of the client; nil: not said
	// Why a person ends the rental whatever the vehicle reports; empty: none does.
	Override string
	// Admit may refuse a request that the booking allows, for example by a limit of the vehicle,
	// from which a client whose booking is over must take nothing. It is not called for a
	// repetition, which sends nothing. Nil: it refuses nothing.
	Admit func(BookingDetails) error
}

// Progress is what the steps of a transition know.
type Progress struct {
	RequestID uuid.UUID `json:"request_id"`
	// Why a person ends the rental whatever the return check says; empty: none does.
	Override string `json:"override,omitempty"`
	// How often its command was ordered before. Each attempt has a command, however often it is
	// ordered.
	Attempt int                  `json:"attempt,omitempty"`
	Command telematics.CommandID `json:"command"`
	// What the vehicle's odometer read when the transition was opened; 0: not known.
	Metres   int64     `json:"metres,omitempty"`
	MetresAt time.Time `json:"metres_at,omitzero"` // when it reported that; zero: not known
	// Likewise when the rental was last paused.
	PauseMetres   int64     `json:"pause_metres,omitempty"`
	PauseMetresAt time.Time `json:"pause_metres_at,omitzero"`
	// The attempt before, while its result is unknown, too.
	Earlier telematics.CommandID `json:"earlier,omitzero"`
	// Since when the vehicle may have executed an attempt that has no result; zero: it has not.
	UnknownSince time.Time `json:"unknown_since,omitzero"`
	// Whether the vehicle was locked when the transition was opened: a report that it still is says
	// nothing about the command. Nil: not known.
	LockedBefore *bool `json:"locked_before,omitempty"`
	OnBefore     bool  `json:"on_before,omitempty"` // likewise, whether its ignition was on
	// When a worker last took a step.
	Looked time.Time `json:"looked,omitzero"`
	// Since when the present step waits.
	Since   time.Time           `json:"since"`
	Failure *telematics.Failure `json:"failure,omitempty"` // why it fails, or has failed
	Wish    Wish                `json:"wish,omitempty"`
	Checks  []Check             `json:"checks,omitempty"` // of the return
	Steps   []Passed            `json:"steps,omitempty"`  // each at most once, the last passed last
}

// Wish is what a client wants of a transition that waits for its vehicle.
type Wish string

const (
	RepeatOrder Wish = "again"  // order the command again
	GiveUp      Wish = "cancel" // undo it
)

// Passed is a step that has ended.
type Passed struct {
	Step TransitionStep  `json:"step"`
	At   time.Time       `json:"at"`
	Code telematics.Code `json:"code,omitempty"` // why it failed; empty: it did not
}

// Action returns the control action that the present step orders.
func (t Transition) Action() telematics.Action {
	switch {
	case t.Step == StepUndo, t.Kind == EndRental:
		return telematics.LockAndDisableDriving
	case t.Kind == StartRental:
		return telematics.UnlockAndEnableDriving
	case t.Kind == PauseRental:
		return telematics.Lock
	}
	return telematics.Unlock
}

// Needs are the commands without which no rental can begin, or none can end.
var Needs = []telematics.Action{telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving}

// CommandKey returns the idempotency key of the present attempt: the command is ordered once,
// whatever process orders it, and however often.
func (t Transition) CommandKey() string {
	return fmt.Sprintf("transition-%s-%s-%d", t.ID, t.Step, t.Attempt)
}

// Enter ends the present step, and begins another.
func (t *Transition) Enter(s TransitionStep, now time.Time) {
	t.pass(now, "")
	t.Step, t.Since = s, now
}

// Overrule ends the present step with an error on which staff insist to go on, and begins another.
func (t *Transition) Overrule(because *telematics.Error, s TransitionStep, now time.Time) {
	t.pass(now, because.Code)
	t.Step, t.Since = s, now
}

// Fail ends the present step with an error, and begins the one that undoes what came before.
func (t *Transition) Fail(because *telematics.Error, s TransitionStep, now time.Time) {
	t.Overrule(because, s, now)
	if t.Failure == nil {
		t.Failure = newFailure(because)
	}
}

// newFailure returns why a transition fails. The same request has the same result, so it is not
// retryable; a new one may be after RetryAfter.
func newFailure(because *telematics.Error) *telematics.Failure {
	f := telematics.NewFailure(because)
	f.Retryable = false
	return f
}

// OrderAgain begins another attempt of the command.
func (t *Transition) OrderAgain(now time.Time) {
	if t.Step == StepConfirm {
		t.Earlier = t.Command
		t.Step, t.Since = StepCommand, now
		t.Steps = slices.DeleteFunc(slices.Clone(t.Steps), func(p Passed) bool { return p.Step == StepCommand })
	}
	t.Attempt++
}

// Join decides what a request for an open transition wants of it. A transition that waits for its
// vehicle has its command ordered again. With an override, an end does not wait for its vehicle,
// nor does a start that is being undone. It returns the activity of the audit log entry; empty:
// nothing is wanted. It fails with a *telematics.Error where there is nothing to override.
func (t *Transition) Join(override string) (activity string, err error) {
	switch {
	case override != "":
		if t.State != TransitionOpen || t.Step != StepUndo && (t.Kind != EndRental || t.Step == StepBook) {
			return "", NothingToOverride()
		}
		t.Override = override
		return TransitionOverride, nil
	case t.State == TransitionOpen && t.Step == StepConfirm && t.Wish == "":
		t.Wish = RepeatOrder
		return TransitionRepeat, nil
	}
	return "", nil
}

// Cancel decides to give a start up. It returns the activity of the audit log entry; empty: the
// start has failed, or is being given up. It fails with a *telematics.Error where the
// transition is not a start, or its command is on its way.
func (t *Transition) Cancel() (activity string, err error) {
	switch {
	case t.Kind != StartRental, t.State == TransitionDone:
		return "", Forbids(BookingStateConflict, "Only a start that is still in progress can be cancelled.")
	case t.State == TransitionFailed, t.Step == StepUndo, t.Step == StepRefund, t.Wish == GiveUp:
		return "", nil
	case t.Step == StepCommand, t.Step == StepBook:
		return "", StartOnItsWay()
	}
	t.Wish = GiveUp
	return TransitionCancel, nil
}

// Undone notes that the vehicle has locked again, after a command that it had not confirmed.
func (t *Transition) Undone() {
	if t.Failure == nil || t.Failure.Outcome == telematics.NotExecuted {
		return
	}
	undone := *t.Failure
	undone.Outcome = telematics.NotExecuted
	undone.Message = "The vehicle did not confirm in time that it opened. It has been locked again, and nothing is charged."
	if undone.Code == TransitionCancelled {
		undone.Message = t.Failure.Message
	}
	t.Failure = &undone
}

// shunted is how many metres a vehicle may be moved after its end was requested. Half has those pay
// for the wait whose odometer counts whole kilometres, and turns a moment later; double drives for
// nothing.
const shunted = 2_000

// IsDriven reports whether by what the odometer says at a time, in metres, the vehicle was driven
// after the transition was requested.
func (t Transition) IsDriven(at time.Time, metres int64) bool {
	within := func(d time.Duration) int64 { return fastest * int64(d/time.Second) }
	driven := metres - t.Metres
	return t.Metres != 0 && !t.MetresAt.IsZero() && driven > shunted+within(t.Requested.Sub(t.MetresAt)) &&
		driven <= within(at.Sub(t.MetresAt)+odometerAge) // else another odometer
}

// ResumedAt returns when a pause since a time has ended that the transition ends at a time. One in
// which the vehicle was driven is none: then it returns its beginning.
func (t Transition) ResumedAt(paused, at time.Time) time.Time {
	was := Transition{Requested: paused, Progress: Progress{Metres: t.PauseMetres, MetresAt: t.PauseMetresAt}}
	if was.IsDriven(t.Requested, t.Metres) {
		return paused
	}
	return at
}

// ReturnedAt returns when a rental has ended whose vehicle was locked at a time, and its odometer:
// when its end was requested, since its client does not pay for the wait; or when it was locked,
// where the client has driven on.
func (t Transition) ReturnedAt(locked time.Time, metres int64) (time.Time, int64) {
	if t.Override != "" || !t.IsDriven(locked, metres) {
		return t.Requested, t.Metres
	}
	return locked, metres
}

// Succeed ends the transition: its booking is changed.
func (t *Transition) Succeed(now time.Time) {
	t.pass(now, "")
	t.end(TransitionDone, now)
}

// GiveUp ends the transition: its booking is as before. An error of the present step is why, unless
// what came before is undone.
func (t *Transition) GiveUp(now time.Time, because *telematics.Error) {
	code := telematics.Code("")
	if because != nil {
		code, t.Failure = because.Code, newFailure(because)
	}
	t.pass(now, code)
	t.end(TransitionFailed, now)
}

func (t *Transition) end(s TransitionState, now time.Time) {
	t.State, t.Ended, t.NeedsStaff, t.Wish = s, now, false, ""
}

// pass ends the present step. A step that is taken again counts once.
func (t *Transition) pass(now time.Time, code telematics.Code) {
	others := slices.DeleteFunc(slices.Clone(t.Steps), func(p Passed) bool { return p.Step == t.Step })
	t.Steps = append(others, Passed{Step: t.Step, At: now, Code: code})
}

// Code returns why the transition has failed; empty: it has not.
func (t Transition) Code() telematics.Code {
	if t.State == TransitionFailed && t.Failure != nil {
		return t.Failure.Code
	}
	return ""
}

// Settlement is what a step of a transition does with its booking.
type Settlement struct {
	Change
	Wait     time.Duration       // until the step is due again; zero: it is not
	Activity telematics.Activity // the audit log entry; without an action: none
}

// StepState is what became of a step of a transition.
type StepState string

const (
	StepPending StepState = "pending"
	StepRunning StepState = "running"
	StepUnknown StepState = "unknown" // the vehicle has not said whether it executed the command
	StepDone    StepState = "done"
	StepFailed  StepState = "failed"
)

// ShownStep is a step of a transition as its client sees it.
type ShownStep struct {
	Step  TransitionStep
	State StepState
	At    time.Time // since when; zero: it has not begun
}

// ShownSteps returns the steps that the transition has taken, takes now, and, unless it has failed,
// will take.
func (t Transition) ShownSteps() []ShownStep {
	shown := []ShownStep{{StepCheck, StepDone, t.Requested}}
	for _, p := range t.Steps {
		state := StepDone
		switch {
		case p.Step == t.Step && t.State == TransitionOpen:
			continue // it is taken again
		case p.Code != "":
			state = StepFailed
		}
		shown = append(shown, ShownStep{p.Step, state, p.At})
	}
	if t.State != TransitionOpen {
		return shown
	}
	state := StepRunning
	if t.Step == StepConfirm {
		state = StepUnknown
	}
	shown = append(shown, ShownStep{t.Step, state, t.Since})
	if t.Failure != nil {
		return shown
	}
	ahead := false
	for _, s := range transitionSteps[t.Kind] {
		if ahead {
			shown = append(shown, ShownStep{Step: s, State: StepPending})
		}
		ahead = ahead || s == t.Step || s == StepCommand && t.Step == StepConfirm
	}
	return shown
}

// NextAction is what the client of an open transition can do.
type NextAction string

const (
	NextWait    NextAction = "wait"
	NextTryDoor NextAction = "try_door"
	NextAsk     NextAction = "ask_again" // the same request again: the command is ordered again
	NextCancel  NextAction = "cancel"
	NextConfirm NextAction = "confirm_payment"
	NextCard    NextAction = "change_card"
	NextContact NextAction = "contact_agency"
)

// Next returns what the client of the booking can do while the transition is open; nil: it has
// ended.
func (t Transition) Next(d BookingDetails) []NextAction {
	var next []NextAction
	switch {
	case t.State != TransitionOpen:
		return nil
	case t.Step == StepPay && d.StartPayment() == PaymentNeedsOwner:
		next = []NextAction{NextConfirm, NextCard, NextCancel}
	case t.Step == StepPay:
		next = []NextAction{NextWait, NextCancel}
	case t.Step == StepConfirm && t.Kind == StartRental:
		next = []NextAction{NextTryDoor, NextAsk, NextCancel}
	case t.Step == StepConfirm:
		next = []NextAction{NextWait, NextAsk}
	default:
		next = []NextAction{NextWait}
	}
	if t.NeedsStaff {
		next = append(next, NextContact)
	}
	return next
}

// inTransition reports whether a transition of the booking is open.
func (d BookingDetails) inTransition() bool {
	return d.Transition != nil && d.Transition.State == TransitionOpen
}

// errTransitionOpen is the error for a change of a booking while a transition of it is open.
func (d BookingDetails) errTransitionOpen() *telematics.Error {
	return &telematics.Error{
		Code: TransitionIsOpen, Retryable: true, RetryAfter: retryTransition,
		Message: fmt.Sprintf("The %s of the rental is still in progress; try again once it has ended.", d.Transition.Kind),
	}
}

// NoSuchTransition is the error for a transition that is unknown, or not of the booking.
func NoSuchTransition(id TransitionID) *telematics.Error {
	return &telematics.Error{Code: TransitionNotFound, Message: fmt.Sprintf("There is no transition %s of this booking.", id)}
}

// HasMoved is the error for a transition of a booking that has another vehicle since it was read.
func HasMoved() error {
	return Forbids(BookingStateConflict, "The booking has another vehicle by now; look which one it is, and start there.")
}

// NothingToOverride is the error for an override of what does not wait for its vehicle.
func NothingToOverride() error {
	return Forbids(BookingStateConflict, "Only an end, or a start that is being undone, can be overridden, and this is neither; "+
		"read the booking again, and send the request without override.")
}
