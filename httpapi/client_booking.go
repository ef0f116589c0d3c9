package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func (b bookings) ofClient(c *request.Call) error {
	p := c.Page("bookings")
	found, err := b.Bookings.FindBookings(c.Ctx(), rental.BookingQuery{
		Agency: c.Actor.Agency, Client: c.Actor.Subject, States: listOf[rental.BookingState](c.QueryParam("status")), Page: p.Query(),
	})
	if err != nil {
		return err
	}
	now := c.Now()
	listed, meta := request.Cut(p, found, position)
	return c.AnswerClient(http.StatusOK, request.Plural(len(listed), "booking"),
		resource.List(listed, func(d rental.BookingDetails) resource.Booking { return resource.NewBooking(d, now) }), meta)
}

// position returns the position of a booking in a list.
func position(d rental.BookingDetails) int64 { return int64(d.ID) }

func cancelBooking(c *request.Call, now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Cancel(now, c.Actor.Role) }
}

func extendBooking(c *request.Call, now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) {
		return d.Extend(now, c.Time("end_date"), c.Actor.Role)
	}
}

func (b bookings) previewExtension(c *request.Call) error {
	d, err := b.visibleBooking(c)
	if err != nil {
		return err
	}
	change, err := d.Extend(c.Now(), c.QueryTime("end_date"), c.Actor.Role)
	if err != nil {
		return err
	}
	d.Booking = change.Booking
	return answerBooking(c, http.StatusOK, "The booking as it would be; nothing has changed.", d)
}

// bookedVehicle answers GET /client/bookings/{booking}/vehicle. It records the read before the
// answer [LAW-9].
func (v vehicles) bookedVehicle(c *request.Call) error {
	d, err := v.visibleBooking(c)
	if err != nil {
		return err
	}
	twin, err := v.Fleet.DurableTwin(c.Ctx(), d.VehicleID)
	if err == nil {
		err = rental.MayLocate(d, c.Now(), twin.Status)
	}
	if err != nil {
		return err
	}
	entry := statusEntry(c, twin, nil)
	entry.Vehicle, entry.Booking = d.VehicleID, int64(d.ID)
	if err := v.audit.recordDurably(c, entry); err != nil {
		return err
	}
	return c.AnswerClient(http.StatusOK, "The vehicle of the booking "+d.Reference+".", resource.NewBookedVehicle(twin, v.address(twin)))
}

// paymentActionBody is what an app needs to let the card's owner confirm a payment.
type paymentActionBody struct {
	ClientSecret string `json:"client_secret"`
}

func (b bookings) paymentAction(c *request.Call) error {
	d, err := b.visibleBooking(c)
	if err != nil {
		return err
	}
	for _, charge := range d.Charges {
		if charge.State != rental.RequiresAction || charge.Intent == "" || charge.Goal == rental.Release {
			continue // nothing to confirm, or to be released
		}
		intent, err := b.Payments.Intent(c.Ctx(), charge.Intent)
		switch {
		case err != nil:
			return rental.Unavailable(err)
		case intent.Secret == "" || intent.Status != rental.IntentAction && intent.Status != rental.IntentPrepared:
			continue // just confirmed or cancelled
		}
		return c.AnswerClient(http.StatusOK, "A payment waits for the card's owner.", paymentActionBody{ClientSecret: intent.Secret})
	}
	return rental.Forbids(rental.BookingStateConflict, "No payment of the booking waits for its card's owner.")
}

// clientControl sends commands to the vehicle of a client's booking, while that is active.
type clientControl struct{ *server }

// order returns the handler of a control action. It always waits for the vehicle: a client cannot
// query the command later.
func (k clientControl) order(a telematics.Action) request.Handler {
	return func(c *request.Call) error {
		entry := c.Entry(telematics.CommandActivity(a), 0)
		d, err := k.booking(c)
		if err == nil && d.Control(c.Now(), a) != nil {
			if earlier, made := k.ordered(c); made {
				return k.repeat(c, entry, d, earlier)
			}
		}
		if err == nil {
			err = k.mayControl(c, d, a)
		}
		if err != nil {
			k.audit.bookingRefused(c.Ctx(), entry, c.BookingID(), d, err)
			return err
		}
		preferences := readPreferences(c.Request().Header)
		preferences.async = false
		receipt, err := k.Controller.Send(c.Ctx(), &delivery.Order{
			Vehicle: d.VehicleID, Action: a, Actor: c.Actor, RequestID: c.ID, Idempotency: c.Key, Lookup: c.Lookup, Booking: int64(d.ID),
			Budget: cmp.Or(preferences.wait, k.Budget), Allowed: k.stillAllowed(c, d.ID, a),
		})
		preferences.ordered(c, receipt, err)
		if err != nil {
			return err
		}
		return k.answer(c, receipt.Command)
	}
}

func (k clientControl) answer(c *request.Call, command *telematics.Command) error {
	return c.AnswerClient(http.StatusOK, done(command), resource.NewCommand(command))
}

// booking returns the booking that the path names. If it cannot be read, the error states that
// nothing was sent.
func (k clientControl) booking(c *request.Call) (rental.BookingDetails, error) {
	d, err := k.visibleBooking(c)
	if refusal := (*telematics.Error)(nil); err != nil && !errors.As(err, &refusal) {
		err = telematics.Unavailable("Postgres", err)
	}
	return d, err
}

// mayControl refuses a command that the booking does not allow now, and one over the vehicle's
// limit. A repetition with the same idempotency key does not count, since it sends nothing.
func (k clientControl) mayControl(c *request.Call, d rental.BookingDetails, a telematics.Action) error {
	if refusal := d.Control(c.Now(), a); refusal != nil {
		return refusal
	}
	return k.limits.PassVehicle(c, d.VehicleID, d.Vehicle.AgencyID)
}

// stillAllowed returns the check of a command that has its lane: the rental may have ended since,
// by a command that had the lane before. Nil: there is nothing to check.
func (k clientControl) stillAllowed(c *request.Call, id rental.BookingID, a telematics.Action) func(context.Context) error {
	if a == telematics.Lock {
		return nil
	}
	return func(ctx context.Context) error {
		d, err := k.Bookings.BookingDetails(ctx, id)
		if err != nil {
			return telematics.Unavailable("Postgres", err)
		}
		if refusal := d.Control(c.Now(), a); refusal != nil {
			return refusal
		}
		return nil
	}
}

// ordered returns the command of an earlier request with the call's key; false: there is none, or
// it cannot be read. The controller cannot decide this: it would execute the command if the key
// expired meanwhile.
func (k clientControl) ordered(c *request.Call) (telematics.Command, bool) {
	made, found, err := c.LookUpKey(c.Ctx(), k.Bulks)
	if err != nil || !found || made.Fingerprint != c.Key.Fingerprint {
		return telematics.Command{}, false
	}
	return made.Command, made.Command.ID != telematics.NoCommand
}

// repeat answers with the result of a command that was ordered while the booking was still active.
func (k clientControl) repeat(c *request.Call, entry telematics.Activity, d rental.BookingDetails, earlier telematics.Command) error {
	entry.Command = earlier.ID
	k.audit.bookingReplayed(c.Ctx(), entry, d)
	c.MarkReplayed(true)
	if earlier.State.IsOpen() {
		return telematics.StillOpen(earlier.ID)
	}
	if err := earlier.Err(); err != nil {
		return err
	}
	return k.answer(c, &earlier)
}
