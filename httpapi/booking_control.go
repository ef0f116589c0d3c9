package httpapi

import (
	"cmp"
	"errors"
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
		id, err := bookingParam(c)
		if err != nil {
			return err
		}
		call := callOf(c)
		line := call.line(telematics.CommandActivity(a), 0, s.Now())
		d, err := s.bookingToControl(c)
		if err == nil && d.Control(s.Now(), a) != nil {
			if earlier, made := s.ordered(c); made {
				return s.repeatControl(c, line, d, earlier)
			}
		}
		if err == nil {
			err = s.mayControl(c, d, a)
		}
		if err != nil {
			s.noteRefused(c.Request().Context(), line, id, d, err)
			return err
		}
		return s.control(c, &telematics.Order{
			Vehicle: d.VehicleID, Action: a, Actor: call.actor, RequestID: call.id, Idempotency: call.key, Lookup: call.lookup, Booking: int64(d.ID),
		})
	}
}

// control carries a client's order to the vehicle, and answers when it is settled. The controller adds its audit log entries.
func (s *server) control(c echo.Context, order *telematics.Order) error {
	preferences := readPreferences(c.Request().Header)
	preferences.async = false
	order.Budget = cmp.Or(preferences.wait, s.Budget)
	receipt, err := s.Controller.Send(c.Request().Context(), order)
	markReplayed(c, receipt.Replayed)
	if !receipt.Replayed { // which waited for nothing
		preferences.apply(c)
	}
	if err != nil {
		return err
	}
	return s.answerControl(c, receipt.Command)
}

func (s *server) answerControl(c echo.Context, command *telematics.Command) error {
	return s.answerClient(c, http.StatusOK, done(*command), newCommandBody(*command))
}

// bookingToControl returns the booking that the path names. Where it cannot be read, nothing is sent.
func (s *server) bookingToControl(c echo.Context) (rental.Dossier, error) {
	d, err := s.booking(c)
	if known := (*telematics.Error)(nil); err != nil && !errors.As(err, &known) {
		err = telematics.Unavailable("Postgres", err)
	}
	return d, err
}

// mayControl refuses a command on a vehicle that is not in the client's hands now, and one too many. What was ordered before, under its key,
// wakes no vehicle.
func (s *server) mayControl(c echo.Context, d rental.Dossier, a telematics.Action) error {
	if refusal := d.Control(s.Now(), a); refusal != nil {
		return refusal
	}
	call, ctx := callOf(c), c.Request().Context()
	if s.VehicleRate == 0 || s.repeats(ctx, call) || !call.actor.Sees(d.Vehicle.AgencyID) {
		return nil
	}
	quota, refusal := s.count(ctx, s.vehicleLimit(d.VehicleID))
	header := c.Response().Header()
	if left, err := strconv.Atoi(header.Get(headerRemaining)); err != nil || quota.Remaining <= left {
		showQuota(header, quota)
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

// ordered returns the command that was ordered under the call's key; false: there is none, or it is not known. The controller is not
// asked: where the key is freed meanwhile, it would carry the command out.
func (s *server) ordered(c echo.Context) (telematics.Command, bool) {
	made, found, err := s.made(c.Request().Context(), callOf(c))
	if err != nil || !found || made.Fingerprint != callOf(c).key.Fingerprint {
		return telematics.Command{}, false
	}
	return made.Command, made.Command.ID != telematics.NoCommand
}

// repeatControl answers what has become of a command that was ordered while the booking was still active.
func (s *server) repeatControl(c echo.Context, line telematics.Activity, d rental.Dossier, earlier telematics.Command) error {
	line.Command = earlier.ID
	s.noteReplayed(c.Request().Context(), line, d)
	markReplayed(c, true)
	if earlier.State.IsOpen() {
		return telematics.StillOpen(earlier)
	}
	if err := earlier.Err(); err != nil {
		return err
	}
	return s.answerControl(c, &earlier)
}
