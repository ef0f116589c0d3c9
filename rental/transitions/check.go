package transitions

import (
	"context"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// reportWithin is how long a vehicle has to report what a return or a pause is checked by. Half
// refuses them in bad cellular networks; double has a client wait for 16 s who cannot be helped.
const reportWithin = 8 * time.Second

// check checks what the vehicle must be like before a transition. What a vehicle reports for it is
// added to twin. It returns the conditions of a return. It fails with a *telematics.Error, or a
// *rental.ReturnRefusal.
func (r *Runner) check(
	ctx context.Context, q rental.TransitionRequest, d rental.BookingDetails, twin *telematics.Twin,
) ([]rental.Check, error) {
	switch q.Kind {
	case rental.StartRental:
		return nil, r.checkStart(ctx, q, d, twin)
	case rental.PauseRental:
		return nil, r.checkPause(ctx, q, d, twin)
	case rental.EndRental:
		return r.checkReturn(ctx, q, d, twin)
	default:
		return nil, nil
	}
}

// checkStart refuses what the vehicle would not do, before anything is charged. What may pass in
// the meantime refuses nothing. A vehicle that cannot be locked and immobilised could never be
// returned by its client.
func (r *Runner) checkStart(
	ctx context.Context, q rental.TransitionRequest, d rental.BookingDetails, twin *telematics.Twin,
) error {
	if twin.Contact.LastSeen.IsZero() || twin.Contact.Unreachable(q.Now) {
		return telematics.UnitOffline(twin.Contact, q.Now)
	}
	refusal := r.Cars.Refusal(ctx, twin, telematics.UnlockAndEnableDriving)
	if refusal != nil && refusal.Code != telematics.TelematicsUnavailable {
		return refusal
	}
	refusal = r.Cars.Refusal(ctx, twin, telematics.LockAndDisableDriving)
	if refusal != nil && refusal.Code == telematics.CommandNotSupported {
		return refusal
	}
	return checkDistance(q, d, twin)
}

// checkJoin checks that a booking whose start is requested again may still begin, and that its
// client is near the vehicle.
func (r *Runner) checkJoin(ctx context.Context, q rental.TransitionRequest, d rental.BookingDetails) error {
	if q.Kind != rental.StartRental || q.Override != "" {
		return nil
	}
	if err := d.MayBegin(q.Now); err != nil {
		return err
	}
	twin, err := r.Cars.Twin(ctx, d.VehicleID)
	if err != nil {
		return err
	}
	return checkDistance(q, d, &twin)
}

func checkDistance(q rental.TransitionRequest, d rental.BookingDetails, twin *telematics.Twin) error {
	position, known := twin.Snapshot.Position()
	if q.Actor.Role != telematics.Client || d.Terms.Rules.MaxDistance == 0 || !known {
		return nil
	}
	return d.Terms.Rules.TooFarToStart(q.Position, position)
}

// checkPause refuses to pause a rental whose vehicle is being driven: its client would drive at the
// price of pauses.
func (r *Runner) checkPause(
	ctx context.Context, q rental.TransitionRequest, d rental.BookingDetails, twin *telematics.Twin,
) error {
	if !isOn(twin.Snapshot) || twin.Contact.Unreachable(q.Now) { // the command is refused
		return nil
	}
	if r.askReport(ctx, q, d, twin); isOn(twin.Snapshot) {
		return telematics.Conflict(telematics.Lock, telematics.IgnitionOn)
	}
	return nil
}

// askReport asks the vehicle for a report, adds that to twin, and returns its time; zero: none
// came.
func (r *Runner) askReport(
	ctx context.Context, q rental.TransitionRequest, d rental.BookingDetails, twin *telematics.Twin,
) (at time.Time) {
	receipt, err := r.Cars.Send(ctx, &delivery.Order{
		Vehicle: d.VehicleID, Action: telematics.ReportState, Budget: reportWithin, Actor: q.Actor,
		RequestID: q.Activity.RequestID, Booking: int64(d.ID),
	})
	if err == nil && receipt.Command != nil && receipt.Command.Reported != nil {
		twin.Snapshot = telematics.Merge(twin.Snapshot, *receipt.Command.Reported)
		at = receipt.Command.Completed
	}
	return at
}

func (r *Runner) checkReturn(
	ctx context.Context, q rental.TransitionRequest, d rental.BookingDetails, twin *telematics.Twin,
) ([]rental.Check, error) {
	if q.Override != "" {
		return nil, nil
	}
	back := rental.Return{
		Rules: d.Terms.Rules, Plan: d.Plan, Dropoff: d.Dropoff, Powertrain: d.Vehicle.Powertrain,
		State: twin.Snapshot, Reported: twin.Snapshot.Latest(),
	}
	if seen := twin.Contact.LastSeen; seen.Before(back.Reported) { // the vehicle's clock is ahead
		back.Reported = seen
	}
	if !back.IsFresh(r.Now()) || back.IsOutdated(r.Now()) {
		// Where the vehicle does not report, the check says so.
		if at := r.askReport(ctx, q, d, twin); !at.IsZero() {
			back.State, back.Reported = twin.Snapshot, at
		}
	}
	if position, _ := back.State.Position(); r.Areas != nil {
		var err error
		if back.Areas, back.Ends, err = r.Areas.At(ctx, d.Agency, position); err != nil {
			return nil, err
		}
	}
	checks := back.Check(r.Now())
	for _, c := range checks {
		if !c.OK {
			r.metrics.refused.WithLabelValues(string(c.Name)).Inc()
		}
	}
	return checks, rental.RefusedReturn(checks)
}
