package httpapi

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/rental"
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
