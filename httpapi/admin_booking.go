package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// adminBookings answers GET /admin/bookings.
func (s *server) adminBookings(c echo.Context) error {
	p, err := pageOf(c, "bookings")
	if err != nil {
		return err
	}
	agency, visible, err := agencyQuery(c)
	if err != nil {
		return err
	}
	vehicle, err := integerQuery(c, "vehicle_id")
	if err != nil {
		return err
	}
	var found []rental.Dossier
	if visible {
		found, err = s.Bookings.Dossiers(c.Request().Context(), rental.BookingQuery{
			Agency:  agency,
			Client:  c.QueryParam("client"),
			State:   rental.BookingState(c.QueryParam("status")),
			Vehicle: telematics.VehicleID(vehicle),
			Page:    p.query(),
		})
	}
	if err != nil {
		return err
	}
	now := s.Now()
	bookings, meta := cut(p, found, position)
	return s.answerWith(c, counted(len(bookings), "booking"),
		bodies(bookings, func(d rental.Dossier) bookingBody { return newAdminBookingBody(d, now) }), meta)
}

// adminBooking answers GET /admin/bookings/{booking}.
func (s *server) adminBooking(c echo.Context) error {
	d, err := s.booking(c)
	if err != nil {
		return err
	}
	return s.answerBooking(c, http.StatusOK, stands(d), d)
}

// openBooking answers POST /admin/bookings.
func (s *server) openBooking(c echo.Context) error {
	call, now := callOf(c), s.Now()
	ctx, cancel := s.unhurried(c)
	defer cancel()
	draft := newDraft(call)
	request := rental.Request{Actor: call.actor, Line: call.line(rental.BookingCreate, draft.Vehicle, now), Key: call.key, Now: now}
	d, replayed, err := s.Bookings.OpenBooking(ctx, draft, request)
	if err = asFields(err); err != nil {
		request.Line.Agency = draft.Agency
		s.noteRefused(ctx, request.Line, 0, rental.Dossier{}, err)
		return err
	}
	if replayed {
		s.noteReplayed(ctx, request.Line, d)
	}
	markReplayed(c, replayed)
	c.Response().Header().Set(echo.HeaderLocation, "/api/v1/admin/bookings/"+strconv.FormatInt(int64(d.ID), 10))
	return s.answerBooking(c, http.StatusCreated, stands(d), d)
}

// newDraft returns the booking that the body asks for, which the contract has checked.
func newDraft(call *call) rental.Draft {
	return rental.Draft{
		Agency: telematics.AgencyID(call.wholeNumber("agency_id")), Client: call.text("client"),
		Vehicle: telematics.VehicleID(call.wholeNumber("vehicle_id")), Start: call.time("start_date"), End: call.time("end_date"),
		Pickup: telematics.StationID(call.wholeNumber("pickup_station_id")), Dropoff: telematics.StationID(call.wholeNumber("dropoff_station_id")),
		Method: rental.MethodID(call.wholeNumber("payment_method_id")),
	}
}

// checkDraft checks what the contract cannot say of a new booking.
func checkDraft(call *call, wrong *contract.FieldErrors) error {
	checkText(call, "client", wrong)
	if agency := telematics.AgencyID(call.wholeNumber("agency_id")); !call.actor.Sees(agency) {
		return &telematics.Error{Code: forbidden,
			Message: fmt.Sprintf("Your access token is of agency %d; it makes no bookings of another one.", call.actor.Agency)}
	}
	return nil
}

func startBooking(_ *call, now time.Time) rental.Decision {
	return func(d rental.Dossier) (rental.Change, error) { return d.Begin(now) }
}

func endBooking(_ *call, now time.Time) rental.Decision {
	return func(d rental.Dossier) (rental.Change, error) { return d.Finish(now) }
}

func fineBooking(call *call, now time.Time) rental.Decision {
	return call.about(func(d rental.Dossier, amount rental.Minor) (rental.Change, error) {
		return d.Fine(now, rental.Fee{Kind: call.text("kind"), Amount: amount, Reason: call.text("reason")})
	})
}

func refundBooking(call *call, now time.Time) rental.Decision {
	return call.about(func(d rental.Dossier, amount rental.Minor) (rental.Change, error) {
		return d.Refund(now, amount, call.text("reason"))
	})
}

func captureDeposit(call *call, now time.Time) rental.Decision {
	return call.about(func(d rental.Dossier, amount rental.Minor) (rental.Change, error) {
		return d.CaptureDeposit(now, amount, call.text("reason"))
	})
}

// about decides by the amount of the body, which is in the booking's currency.
func (call *call) about(decide func(rental.Dossier, rental.Minor) (rental.Change, error)) rental.Decision {
	return func(d rental.Dossier) (rental.Change, error) {
		amount, err := call.amount(d.Price.Currency)
		if err != nil {
			return rental.Change{}, err
		}
		return decide(d, amount)
	}
}

// checkMoney checks what the contract cannot say of money that an administrator moves, and why.
func checkMoney(call *call, wrong *contract.FieldErrors) error {
	checkAmount(call, wrong)
	checkText(call, "reason", wrong)
	return nil
}

// checkRefund checks that it is said how much goes back: an amount, or all that is left.
func checkRefund(call *call, wrong *contract.FieldErrors) error {
	_, hasAmount := call.values["amount"]
	full, hasFull := call.values["full"]
	switch {
	case hasAmount && hasFull:
		wrong.AddIfValid("full", "must not come with amount: send one of the two")
	case hasFull && full != true:
		wrong.AddIfValid("full", "must be true; to give back a part, send amount instead")
	case !hasAmount && !hasFull:
		wrong.AddIfValid("amount", `is required: must be a number, not in quotes; to give back all that is left, send "full": true instead`)
	}
	return checkMoney(call, wrong)
}

// adminBookingBody is what an administrator sees of a booking in addition to what its client sees.
type adminBookingBody struct {
	AgencyID   int64        `json:"agency_id"`
	Client     string       `json:"client"`
	Extensions int          `json:"extensions"`
	Charges    []chargeBody `json:"charges"`
}

// chargeBody is what a booking costs, or gives back, and what became of it.
type chargeBody struct {
	ID          string             `json:"id"`
	Kind        rental.ChargeKind  `json:"kind"`
	Number      int                `json:"number"`
	State       rental.ChargeState `json:"state"`
	Amount      json.Number        `json:"amount"`
	Settled     json.Number        `json:"settled"`
	Currency    rental.Currency    `json:"currency"`
	Fee         *string            `json:"fee"`
	Reason      *string            `json:"reason"`
	Card        *string            `json:"card"`
	DeclineCode *string            `json:"decline_code"`
	Attempts    int                `json:"attempts"`
	NextAttempt *string            `json:"next_attempt_at"`
	PaidAt      *string            `json:"paid_at"`
	CreatedAt   string             `json:"created_at"`
	RefundOf    *string            `json:"refund_of"`
}

func newAdminBookingBody(d rental.Dossier, now time.Time) bookingBody {
	body := newBookingBody(d, now)
	body.adminBookingBody = &adminBookingBody{
		AgencyID: int64(d.Agency), Client: d.Subject, Extensions: d.Extensions, Charges: bodies(d.Charges, newChargeBody),
	}
	return body
}

func newChargeBody(c rental.Charge) chargeBody {
	body := chargeBody{
		ID: c.ID.String(), Kind: c.Kind, Number: c.Number, State: c.State, Amount: money(c.Currency, c.Amount),
		Settled: money(c.Currency, c.Settled), Currency: c.Currency, Fee: orNull(c.Fee), Reason: orNull(c.Reason),
		DeclineCode: orNull(c.DeclineCode), Attempts: c.Attempts, NextAttempt: timestampOrNull(c.NextAttempt),
		PaidAt: timestampOrNull(c.PaidAt), CreatedAt: timestamp(c.Created),
	}
	if c.LastFour != "" {
		label := rental.Card{Brand: c.Brand, LastFour: c.LastFour}.Label()
		body.Card = &label
	}
	if c.Refunds != (rental.ChargeID{}) {
		refunded := c.Refunds.String()
		body.RefundOf = &refunded
	}
	return body
}
