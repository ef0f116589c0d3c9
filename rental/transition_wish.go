package rental

// Join decides what a request for an open transition wants of it. A transition that waits for its
// vehicle has its command ordered again. With an override, an end does not wait for its vehicle,
// nor does a start that is being undone. It returns the activity of the audit log entry; empty:
// nothing is wanted. It fails with a *telematics.Error where there is nothing to override.
func (t *Transition) Join(override string) (activity string, err error) {
	switch {
	case override != "":
		if t.State != TransitionOpen || t.Kind != EndRental && t.Step != StepUndo {
			return "", NothingToOverride()
		}
		t.Override = override
		return TransitionOverride, nil
	case t.State == TransitionOpen && t.Step == StepConfirm && t.Wish != RepeatOrder:
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

// NothingToOverride is the error for an override of what does not wait for its vehicle.
func NothingToOverride() error {
	return Forbids(BookingStateConflict, "Only an end, or a start that is being undone, can be overridden, and this is neither; "+
		"read the booking again, and send the request without override.")
}
