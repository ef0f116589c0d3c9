package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// ofClient answers GET /client/bookings.
func (b bookings) ofClient(c *call) error {
	p := c.page("bookings")
	found, err := b.record.FindBookings(c.ctx(), rental.BookingQuery{
		Agency: c.actor.Agency, Client: c.actor.Subject, State: rental.BookingState(c.QueryParam("status")), Page: p.query(),
	})
	if err != nil {
		return err
	}
	now := c.now()
	listed, meta := cut(p, found, position)
	return c.answerClient(http.StatusOK, plural(len(listed), "booking"),
		resource.List(listed, func(d rental.BookingDetails) resource.Booking { return resource.NewBooking(d, now) }), meta)
}

// position returns the position of a booking in a list.
func position(d rental.BookingDetails) int64 { return int64(d.ID) }

func cancelBooking(_ *call, now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Cancel(now) }
}

func extendBooking(c *call, now time.Time) rental.Decision {
	end := c.time("end_date")
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Extend(now, end) }
}

// paymentActionBody is what an app needs to let the card's owner confirm a payment.
type paymentActionBody struct {
	ClientSecret string `json:"client_secret"`
}

// paymentAction answers GET /client/bookings/{booking}/payment-action.
func (b bookings) paymentAction(c *call) error {
	d, err := visibleBooking(c, b.record)
	if err != nil {
		return err
	}
	for _, charge := range d.Charges {
		if charge.State != rental.RequiresAction || charge.Intent == "" || charge.Goal == rental.Release {
			continue // nothing to confirm, or to be released
		}
		intent, err := b.payments.Intent(c.ctx(), charge.Intent)
		switch {
		case err != nil:
			return rental.Unavailable(err)
		case intent.Secret == "" || intent.Status != rental.IntentAction && intent.Status != rental.IntentPrepared:
			continue // just confirmed or cancelled
		}
		return c.answerClient(http.StatusOK, "A payment waits for the card's owner.", paymentActionBody{ClientSecret: intent.Secret})
	}
	return rental.Forbids(rental.BookingStateConflict, "No payment of the booking waits for its card's owner.")
}

// clientControl sends commands to the vehicle of a client's booking, while that is active.
type clientControl struct {
	record     Bookings
	controller Controller
	bulks      Bulks
	limits     *limits
	audit      *audit
	budget     time.Duration // of a command
}

// order returns the handler of a control action. It always waits for the vehicle: a client cannot
// query the command later.
func (k clientControl) order(a telematics.Action) handler {
	return func(c *call) error {
		entry := c.entry(telematics.CommandActivity(a), 0)
		d, err := k.booking(c)
		if err == nil && d.Control(c.now(), a) != nil {
			if earlier, made := k.ordered(c); made {
				return k.repeat(c, entry, d, earlier)
			}
		}
		if err == nil {
			err = k.mayControl(c, d, a)
		}
		if err != nil {
			k.audit.bookingRefused(c.ctx(), entry, c.bookingID(), d, err)
			return err
		}
		preferences := readPreferences(c.Request().Header)
		preferences.async = false
		receipt, err := k.controller.Send(c.ctx(), &delivery.Order{
			Vehicle: d.VehicleID, Action: a, Actor: c.actor, RequestID: c.id, Idempotency: c.key, Lookup: c.lookup, Booking: int64(d.ID),
			Budget: cmp.Or(preferences.wait, k.budget),
		})
		c.ordered(receipt, err)
		c.markReplayed(receipt.Replayed)
		if !receipt.Replayed { // which waited for nothing
			preferences.apply(c)
		}
		if err != nil {
			return err
		}
		return k.answer(c, receipt.Command)
	}
}

func (k clientControl) answer(c *call, command *telematics.Command) error {
	return c.answerClient(http.StatusOK, done(command), resource.NewCommand(command))
}

// booking returns the booking that the path names. If it cannot be read, the error states that
// nothing was sent.
func (k clientControl) booking(c *call) (rental.BookingDetails, error) {
	d, err := visibleBooking(c, k.record)
	if refusal := (*telematics.Error)(nil); err != nil && !errors.As(err, &refusal) {
		err = telematics.Unavailable("Postgres", err)
	}
	return d, err
}

// mayControl refuses a command that the booking does not allow now, and one over the vehicle's
// limit. A repetition with the same idempotency key does not count, since it sends nothing.
func (k clientControl) mayControl(c *call, d rental.BookingDetails, a telematics.Action) error {
	if refusal := d.Control(c.now(), a); refusal != nil {
		return refusal
	}
	if k.limits.Vehicle == 0 || k.limits.repeats(c.ctx(), c) || !c.actor.Sees(d.Vehicle.AgencyID) {
		return nil
	}
	quota, err := k.limits.count(c.ctx(), k.limits.vehicleLimit(d.VehicleID))
	c.quota = smallerQuota(c.quota, quota)
	return err
}

// ordered returns the command of an earlier request with the call's key; false: there is none, or
// it cannot be read. The controller cannot decide this: it would execute the command if the key
// expired meanwhile.
func (k clientControl) ordered(c *call) (telematics.Command, bool) {
	made, found, err := c.lookUpKey(c.ctx(), k.bulks)
	if err != nil || !found || made.Fingerprint != c.key.Fingerprint {
		return telematics.Command{}, false
	}
	return made.Command, made.Command.ID != telematics.NoCommand
}

// repeat answers with the result of a command that was ordered while the booking was still active.
func (k clientControl) repeat(c *call, entry telematics.Activity, d rental.BookingDetails, earlier telematics.Command) error {
	entry.Command = earlier.ID
	k.audit.bookingReplayed(c.ctx(), entry, d)
	c.markReplayed(true)
	if earlier.State.IsOpen() {
		return telematics.StillOpen(earlier.ID)
	}
	if err := earlier.Err(); err != nil {
		return err
	}
	return k.answer(c, &earlier)
}
