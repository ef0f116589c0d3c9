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

// list answers GET /admin/bookings.
func (b bookings) list(c *call) error {
	p := c.page("bookings")
	var found []rental.BookingDetails
	if agency, visible := c.queryAgency(); visible {
		var err error
		found, err = b.record.FindBookings(c.ctx(), rental.BookingQuery{
			Agency:  agency,
			Client:  c.QueryParam("client"),
			State:   rental.BookingState(c.QueryParam("status")),
			Vehicle: telematics.VehicleID(c.queryInteger("vehicle_id")),
			Page:    p.query(),
		})
		if err != nil {
			return err
		}
	}
	now := c.now()
	listed, meta := cut(p, found, position)
	return c.answerWith(plural(len(listed), "booking"),
		bodies(listed, func(d rental.BookingDetails) bookingBody { return newAdminBookingBody(d, now) }), meta)
}

// open answers POST /admin/bookings.
func (b bookings) open(c *call) error {
	ctx, cancel := detached(c, b.readBudget)
	defer cancel()
	draft := newDraft(c)
	entry := c.entry(rental.BookingCreate, draft.Vehicle)
	d, replayed, err := b.record.OpenBooking(ctx, draft, rental.Request{Actor: c.actor, Activity: entry, Key: c.key, Now: entry.At})
	if err = asFields(err); err != nil {
		entry.Agency = draft.Agency
		b.audit.bookingRefused(ctx, entry, 0, rental.BookingDetails{}, err)
		return err
	}
	if replayed {
		b.audit.bookingReplayed(ctx, entry, d)
	}
	c.markReplayed(replayed)
	c.setHeader(echo.HeaderLocation, "/api/v1/admin/bookings/"+strconv.FormatInt(int64(d.ID), 10))
	return answerBooking(c, http.StatusCreated, describe(d), d)
}

// newDraft returns the booking in the body, which the contract has checked.
func newDraft(c *call) rental.Draft {
	return rental.Draft{
		Agency: telematics.AgencyID(c.wholeNumber("agency_id")), Client: c.text("client"),
		Vehicle: telematics.VehicleID(c.wholeNumber("vehicle_id")), Start: c.time("start_date"), End: c.time("end_date"),
		Pickup: telematics.StationID(c.wholeNumber("pickup_station_id")), Dropoff: telematics.StationID(c.wholeNumber("dropoff_station_id")),
		Method: rental.MethodID(c.wholeNumber("payment_method_id")),
	}
}

// checkDraft checks what the contract cannot express.
func checkDraft(c *call, wrong *contract.FieldErrors) error {
	checkText(c, "client", wrong)
	if agency := telematics.AgencyID(c.wholeNumber("agency_id")); !c.actor.Sees(agency) {
		return &telematics.Error{Code: forbidden,
			Message: fmt.Sprintf("Your access token is of agency %d; it makes no bookings of another one.", c.actor.Agency)}
	}
	return nil
}

func startBooking(_ *call, now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Begin(now) }
}

func endBooking(_ *call, now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Finish(now) }
}

func fineBooking(c *call, now time.Time) rental.Decision {
	return c.about(func(d rental.BookingDetails, amount rental.Minor) (rental.Change, error) {
		return d.Fine(now, rental.Fee{Kind: c.text("kind"), Amount: amount, Reason: c.text("reason")})
	})
}

func refundBooking(c *call, now time.Time) rental.Decision {
	return c.about(func(d rental.BookingDetails, amount rental.Minor) (rental.Change, error) {
		return d.Refund(now, amount, c.text("reason"))
	})
}

func captureDeposit(c *call, now time.Time) rental.Decision {
	return c.about(func(d rental.BookingDetails, amount rental.Minor) (rental.Change, error) {
		return d.CaptureDeposit(now, amount, c.text("reason"))
	})
}

// about decides by the amount of the body, which is in the booking's currency.
func (c *call) about(decide func(rental.BookingDetails, rental.Minor) (rental.Change, error)) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) {
		amount, err := c.amount(d.Price.Currency)
		if err != nil {
			return rental.Change{}, err
		}
		return decide(d, amount)
	}
}

// checkMoney checks what the contract cannot express.
func checkMoney(c *call, wrong *contract.FieldErrors) error {
	checkAmount(c, wrong)
	checkText(c, "reason", wrong)
	return nil
}

// checkRefund checks that the body says how much is refunded: an amount, or all that is left.
func checkRefund(c *call, wrong *contract.FieldErrors) error {
	_, hasAmount := c.values["amount"]
	full, hasFull := c.values["full"]
	switch {
	case hasAmount && hasFull:
		wrong.AddIfValid("full", "must not come with amount: send one of the two")
	case hasFull && full != true:
		wrong.AddIfValid("full", "must be true; to give back a part, send amount instead")
	case !hasAmount && !hasFull:
		wrong.AddIfValid("amount", `is required: must be a number, not in quotes; to give back all that is left, send "full": true instead`)
	}
	return checkMoney(c, wrong)
}

// adminBookingBody is what an administrator sees of a booking in addition to what its client sees.
type adminBookingBody struct {
	AgencyID   int64        `json:"agency_id"`
	Client     string       `json:"client"`
	Extensions int          `json:"extensions"`
	Charges    []chargeBody `json:"charges"`
}

// chargeBody is a charge or a refund of a booking.
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

func newAdminBookingBody(d rental.BookingDetails, now time.Time) bookingBody {
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
