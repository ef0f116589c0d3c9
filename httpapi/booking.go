package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// amend adds a change of the booking that the path names, as it is decided by the call.
func (r router) amend(path, activity string, decide amendment, options ...func(*gate)) {
	r.post(path, activity, r.amends(activity, decide), options...)
}

// amendment returns how a call wants a booking changed.
type amendment func(call *call, now time.Time) rental.Decision

// amends returns the handler of a change of a booking. It answers with the booking as it is then.
func (s *server) amends(activity string, decide amendment) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := bookingParam(c)
		if err != nil {
			return err
		}
		call, now := callOf(c), s.Now()
		ctx, cancel := s.unhurried(c)
		defer cancel()
		var seen rental.Dossier
		decision := decide(call, now)
		request := rental.Request{Booking: id, Actor: call.actor, Line: call.line(activity, 0, now), Key: call.key, Now: now}
		after, replayed, err := s.Bookings.Amend(ctx, request, func(d rental.Dossier) (rental.Change, error) {
			seen = d
			return decision(d)
		})
		if err = asFields(err); err != nil {
			s.noteRefused(ctx, request.Line, id, seen, err)
			return err
		}
		if replayed {
			s.noteReplayed(ctx, request.Line, after)
		} else if s.Nudge != nil {
			s.Nudge()
		}
		markReplayed(c, replayed)
		return s.answerBooking(c, http.StatusOK, changed(activity, after), after)
	}
}

// unhurried returns a context for a change: a caller that hangs up does not leave it half-way, and does not stop it.
func (s *server) unhurried(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), s.ReadBudget)
}

// noteRefused records that a booking was not changed, or that this is not known. seen is zero where the actor
// may not see the booking.
func (s *server) noteRefused(ctx context.Context, line telematics.Activity, id rental.BookingID, seen rental.Dossier, refusal error) {
	line.Booking, line.Code, line.Outcome = int64(id), asError(refusal).Code, telematics.NotExecuted
	if line.Code == serviceUnavailable || line.Code == telematics.Internal {
		line.Outcome = telematics.MayHave // the record may have it all the same
	}
	if seen.ID != 0 {
		line.Agency, line.Vehicle = seen.Agency, seen.VehicleID
	}
	s.Refusals.Note(context.WithoutCancel(ctx), line)
}

// noteReplayed writes down that a request was answered from an earlier one. It says nothing new of the booking.
func (s *server) noteReplayed(ctx context.Context, line telematics.Activity, d rental.Dossier) {
	line.Booking, line.Agency, line.Vehicle, line.Code = int64(d.ID), d.Agency, d.VehicleID, telematics.IdempotencyReplayed
	s.Refusals.Note(context.WithoutCancel(ctx), line)
}

// booking returns the booking that the path names. One that is not the actor's to see does not exist for it.
func (s *server) booking(c echo.Context) (rental.Dossier, error) {
	id, err := bookingParam(c)
	if err != nil {
		return rental.Dossier{}, err
	}
	d, err := s.Bookings.Dossier(c.Request().Context(), id)
	if err == nil && !d.VisibleTo(callOf(c).actor) {
		err = rental.NoSuchBooking(id)
	}
	if err != nil {
		return rental.Dossier{}, err
	}
	return d, nil
}

// answerBooking answers with a booking, as much of it as is for the actor's eyes.
func (s *server) answerBooking(c echo.Context, status int, message string, d rental.Dossier) error {
	if callOf(c).actor.Role == telematics.Client {
		return s.answerClient(c, status, message, newBookingBody(d, s.Now()))
	}
	return s.write(c, status, envelope{Success: true, Message: message, Data: newAdminBookingBody(d, s.Now())})
}

// asFields turns a field error of the domain into the field errors of an answer.
func asFields(err error) error {
	var field *rental.FieldError
	if errors.As(err, &field) {
		return contract.Invalid(field.Field, field.Message)
	}
	return err
}

// stands says where a booking is in its life.
func stands(d rental.Dossier) string {
	return fmt.Sprintf("The booking %s is %s.", d.Reference, d.State)
}

// changed words what was done to a booking.
func changed(activity string, d rental.Dossier) string {
	switch activity {
	case rental.BookingExtend:
		return fmt.Sprintf("The booking %s ends at %s.", d.Reference, timestamp(d.End))
	case rental.BookingFee:
		return fmt.Sprintf("The fee was added to the booking %s.", d.Reference)
	case rental.BookingRefund:
		return fmt.Sprintf("The refund of the booking %s is on its way.", d.Reference)
	case rental.BookingCapture:
		return fmt.Sprintf("The capture from the deposit of the booking %s is on its way.", d.Reference)
	default:
		return stands(d)
	}
}
