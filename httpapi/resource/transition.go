package resource

import (
	"motorpool/httpapi/errorcode"
	"motorpool/rental"
	"motorpool/telematics"
)

// Transition is a start, pause, resumption or end of a rental.
type Transition struct {
	ID          string                 `json:"id"`
	BookingID   int64                  `json:"booking_id"`
	Kind        rental.TransitionKind  `json:"kind"`
	State       rental.TransitionState `json:"state"`
	Step        *rental.TransitionStep `json:"step"` // null: it has ended
	Steps       []TransitionStep       `json:"steps"`
	Next        []rental.NextAction    `json:"next"`
	NeedsStaff  bool                   `json:"needs_staff"`
	Error       *TransitionError       `json:"error"`
	Checks      []rental.Check         `json:"checks"`
	CommandID   *string                `json:"command_id"`
	RequestedAt string                 `json:"requested_at"`
	RequestedBy *string                `json:"requested_by"`
	Override    *string                `json:"override"`
	EndedAt     *string                `json:"ended_at"`
}

// TransitionStep is a step that was taken, is taken, or will be.
type TransitionStep struct {
	Name  rental.TransitionStep `json:"name"`
	State rental.StepState      `json:"state"`
	At    *string               `json:"at"`
}

// TransitionError is why a transition has failed, or is being undone.
type TransitionError struct {
	Code      string  `json:"code"`
	Message   string  `json:"message"`
	Retryable bool    `json:"retryable"`
	Outcome   *string `json:"outcome"`
	Reason    *string `json:"reason"`
}

// NewClientTransition returns a transition as its client sees it: without who of the staff did
// something with it, and why, and without what is of the vehicle's unit.
func NewClientTransition(d rental.BookingDetails, t rental.Transition) *Transition {
	body := NewTransition(d, t)
	body.CommandID, body.RequestedBy, body.Override = nil, nil, nil
	if t.Failure != nil {
		body.Error = newTransitionError(errorcode.OfTransition(t.Failure))
	}
	return body
}

// NewTransition returns a transition as administrators see it.
func NewTransition(d rental.BookingDetails, t rental.Transition) *Transition {
	body := &Transition{
		ID: t.ID.String(), BookingID: int64(t.Booking), Kind: t.Kind, State: t.State, NeedsStaff: t.NeedsStaff,
		Next: append([]rental.NextAction{}, t.Next(d)...), Checks: append([]rental.Check{}, t.Checks...),
		RequestedAt: Timestamp(t.Requested), RequestedBy: &t.By.Subject, Override: OrNull(t.Override), EndedAt: TimestampOrNull(t.Ended),
	}
	if t.State == rental.TransitionOpen {
		body.Step = &t.Step
	}
	if t.Command != telematics.NoCommand {
		body.CommandID = new(t.Command.String())
	}
	body.Steps = List(t.ShownSteps(), func(s rental.ShownStep) TransitionStep {
		return TransitionStep{Name: s.Step, State: s.State, At: TimestampOrNull(s.At)}
	})
	if t.Failure != nil {
		body.Error = newTransitionError(t.Failure.Err())
	}
	return body
}

func newTransitionError(e *telematics.Error) *TransitionError {
	return &TransitionError{
		Code: string(e.Code), Message: e.Message, Retryable: e.Retryable, Outcome: OrNull(string(e.Outcome)), Reason: OrNull(e.Reason),
	}
}
