package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// clientBookings answers GET /client/bookings.
func (s *server) clientBookings(c echo.Context) error {
	p, err := pageOf(c, "bookings")
	if err != nil {
		return err
	}
	actor := callOf(c).actor
	found, err := s.Bookings.Dossiers(c.Request().Context(), rental.BookingQuery{
		Agency: actor.Agency, Client: actor.Subject, State: rental.BookingState(c.QueryParam("status")), Page: p.query(),
	})
	if err != nil {
		return err
	}
	now := s.Now()
	bookings, meta := cut(p, found, position)
	return s.answerClient(c, http.StatusOK, counted(len(bookings), "booking"),
		bodies(bookings, func(d rental.Dossier) bookingBody { return newBookingBody(d, now) }), meta)
}

// position is a booking's in a page.
func position(d rental.Dossier) int64 { return int64(d.ID) }

// clientBooking answers GET /client/bookings/{booking}.
func (s *server) clientBooking(c echo.Context) error {
	d, err := s.booking(c)
	if err != nil {
		return err
	}
	return s.answerBooking(c, http.StatusOK, stands(d), d)
}

func cancelBooking(_ *call, now time.Time) rental.Decision {
	return func(d rental.Dossier) (rental.Change, error) { return d.Cancel(now) }
}

func extendBooking(call *call, now time.Time) rental.Decision {
	end := call.time("end_date")
	return func(d rental.Dossier) (rental.Change, error) { return d.Extend(now, end) }
}

// paymentActionBody is what an app needs to let the card's owner confirm a payment.
type paymentActionBody struct {
	ClientSecret string `json:"client_secret"`
}

// paymentAction answers GET /client/bookings/{booking}/payment-action.
func (s *server) paymentAction(c echo.Context) error {
	d, err := s.booking(c)
	if err != nil {
		return err
	}
	for _, charge := range d.Charges {
		if charge.State != rental.RequiresAction || charge.Intent == "" || charge.Goal == rental.Release {
			continue // nothing to confirm, or nothing that is still wanted
		}
		intent, err := s.Payments.Intent(c.Request().Context(), charge.Intent)
		switch {
		case err != nil:
			return rental.Away(err)
		case intent.Secret == "" || intent.Status != rental.IntentAction && intent.Status != rental.IntentPrepared:
			continue // confirmed, or given up, a moment ago
		}
		return s.answerClient(c, http.StatusOK, "A payment waits for the card's owner.", paymentActionBody{ClientSecret: intent.Secret})
	}
	return rental.Forbids(rental.BookingStateConflict, "No payment of the booking waits for its card's owner.")
}

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
		return s.control(c, &delivery.Order{
			Vehicle: d.VehicleID, Action: a, Actor: call.actor, RequestID: call.id, Idempotency: call.key, Lookup: call.lookup, Booking: int64(d.ID),
		})
	}
}

// control carries a client's order to the vehicle, and answers when it is settled. The controller adds its audit log entries.
func (s *server) control(c echo.Context, order *delivery.Order) error {
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
