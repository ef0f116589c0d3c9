package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"motorpool/rental"
	"motorpool/telematics"
)

// orderOfClient returns the handler of a control action on the vehicle of a client's own booking, while it is in the client's hands. It
// always waits for the vehicle: a client has nowhere to look later.
func (s *server) orderOfClient(a telematics.Action) echo.HandlerFunc {
	return func(c echo.Context) error {
		call := callOf(c)
		id, err := bookingParam(c)
		if err != nil {
			return err
		}
		d, err := s.booking(c)
		if err == nil && d.State != rental.Active && call.key != nil {
			if repeated, err := s.repeatControl(c, a, d); repeated {
				return err
			}
		}
		if err == nil {
			err = s.mayControl(c, d)
		} else if known := (*telematics.Error)(nil); !errors.As(err, &known) {
			err = telematics.Unavailable("Postgres", err)
		}
		if err != nil {
			s.noteRefused(c.Request().Context(), call.line(telematics.CommandActivity(a), 0, s.Now()), id, d, err)
			return err
		}
		preferences := readPreferences(c.Request().Header)
		preferences.async = false
		order := telematics.Order{
			Vehicle: d.VehicleID, Action: a, Budget: cmp.Or(preferences.wait, s.Budget),
			Actor: call.actor, RequestID: call.id, Idempotency: call.key,
		}
		receipt, err := s.Controller.Send(c.Request().Context(), order)
		markReplayed(c, receipt.Replayed)
		if !receipt.Replayed {
			preferences.apply(c)
		}
		if err != nil {
			return err
		}
		return s.answerClient(c, http.StatusOK, done(receipt.Command), newCommandBody(receipt.Command))
	}
}

// mayControl refuses a command on a vehicle that is not in the client's hands now, and one too many. What was ordered before, under its key,
// wakes no vehicle.
func (s *server) mayControl(c echo.Context, d rental.Dossier) error {
	if d.State != rental.Active {
		refusal := rental.Forbids(rental.BookingNotActive,
			fmt.Sprintf("The booking is %s; its vehicle can be locked and unlocked only while it is active. Nothing was sent.", d.State))
		refusal.Outcome = telematics.NotExecuted
		return refusal
	}
	call, ctx := callOf(c), c.Request().Context()
	if s.repeats(ctx, call) {
		return nil
	}
	quota, refusal := s.takeVehicle(context.WithoutCancel(ctx), call.actor, d.VehicleID)
	header := c.Response().Header()
	if left, err := strconv.Atoi(header.Get(headerRemaining)); err != nil || quota.Remaining <= left {
		showQuota(header, quota)
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

// repeatControl answers a command that was ordered before, under its key, while the booking was still active. It reports false where there
// was none. The controller is not asked: where the key is freed meanwhile, it would carry the command out.
func (s *server) repeatControl(c echo.Context, a telematics.Action, d rental.Dossier) (bool, error) {
	call, ctx := callOf(c), c.Request().Context()
	made, found, err := s.Bulks.Made(ctx, *call.key)
	if err != nil || !found || made.Fingerprint != call.key.Fingerprint || made.Command.ID == telematics.NoCommand {
		return false, nil // the booking's state says more
	}
	line := call.line(telematics.CommandActivity(a), d.VehicleID, s.Now())
	line.Command = made.Command.ID
	s.noteReplayed(ctx, line, d)
	markReplayed(c, true)
	if made.Command.State.IsOpen() {
		return true, telematics.StillOpen(made.Command)
	}
	if err := made.Command.Err(); err != nil {
		return true, err
	}
	return true, s.answerClient(c, http.StatusOK, done(made.Command), newCommandBody(made.Command))
}
