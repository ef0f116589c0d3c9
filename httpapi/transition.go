package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

// transitions starts, pauses, resumes and ends rentals.
type transitions struct{ *server }

// open returns the handler that begins a transition. It answers with the booking once the
// transition is done, with the error once it has failed, or, with Prefer: respond-async or if it
// takes longer, with the transition.
func (h transitions) open(kind rental.TransitionKind) request.Handler {
	return func(c *request.Call) error {
		ctx, cancel := c.Detached(openBudget)
		defer cancel()
		entry := c.Entry(rental.TransitionActivity(kind), 0)
		err := h.checkClock(ctx)
		var t rental.Transition
		var replayed bool
		if err == nil {
			t, replayed, err = h.Rentals.Open(ctx, rental.TransitionRequest{
				Request: rental.Request{Booking: c.BookingID(), Actor: c.Actor, Activity: entry, Key: c.Key, Now: entry.At},
				Kind:    kind, Position: positionOf(c), Override: overrideOf(c),
				Admit: func(d rental.BookingDetails) error { return h.admit(c, kind, d) },
			})
		}
		if err = asFields(err); err != nil {
			h.audit.bookingRefused(ctx, entry, c.BookingID(), rental.BookingDetails{}, err)
			return err
		}
		preferences := readPreferences(c.Request().Header)
		wait := time.Duration(0)
		if !preferences.async {
			wait = min(cmp.Or(preferences.wait, h.Budget+transitionSlack), telematics.MaxBudget-c.Now().Sub(entry.At))
		}
		preferences.apply(c)
		d, t, err := h.await(c, entry, t, replayed, wait)
		switch {
		case err != nil:
			return err
		case t.State == rental.TransitionFailed:
			if c.Actor.Role == telematics.Client {
				return errorcode.OfTransition(t.Failure)
			}
			return t.Failure.Err()
		case t.State == rental.TransitionDone:
			return answerBooking(c, http.StatusOK, describe(d), d)
		}
		return answerTransition(c, d, t)
	}
}

// admit counts a request for a transition against the limits. A client's start tries its card, so
// it counts as one, unless it joins a start in progress.
func (h transitions) admit(c *request.Call, kind rental.TransitionKind, d rental.BookingDetails) error {
	err := h.limits.PassVehicle(c, d.VehicleID, d.Agency)
	if joins := d.Transition != nil && d.Transition.State == rental.TransitionOpen; err != nil || joins ||
		kind != rental.StartRental || c.Actor.Role != telematics.Client {
		return err
	}
	return h.limits.PassStart(c)
}

// await waits for the end of a transition, for a time, and returns it as it is then, with its
// booking. A request that repeats an earlier one is marked, and recorded.
func (h transitions) await(
	c *request.Call, entry telematics.Activity, t rental.Transition, replayed bool, wait time.Duration,
) (d rental.BookingDetails, _ rental.Transition, err error) {
	if wait > 0 {
		if t, err = h.Rentals.Await(c.Ctx(), t.ID, wait); err != nil {
			return d, t, err
		}
	}
	d, err = h.visibleBooking(c)
	if err == nil && replayed {
		c.MarkReplayed(true)
		h.audit.bookingReplayed(c.Ctx(), entry, d)
	}
	return d, t, err
}

// answerTransition answers with a transition: with 202 to a change that is still in progress.
func answerTransition(c *request.Call, d rental.BookingDetails, t rental.Transition) error {
	status, side := http.StatusOK, "admin"
	if c.Actor.Role == telematics.Client {
		side = "client"
	}
	if c.Request().Method == http.MethodPost && t.State == rental.TransitionOpen {
		status = http.StatusAccepted
		c.SetHeader(echo.HeaderLocation, fmt.Sprintf("/api/v1/%s/bookings/%d/transitions/%s", side, d.ID, t.ID))
	}
	became := map[rental.TransitionState]string{
		rental.TransitionOpen: "is open", rental.TransitionDone: "is done", rental.TransitionFailed: "has failed",
	}[t.State]
	message := fmt.Sprintf("The %s of the rental %s %s.", t.Kind, d.Reference, became)
	if c.Actor.Role == telematics.Client {
		return c.AnswerClient(status, message, resource.NewClientTransition(d, t))
	}
	return c.AnswerWith(status, message, resource.NewTransition(d, t), nil)
}

func (h transitions) get(c *request.Call) error {
	d, t, err := h.find(c)
	if err != nil {
		return err
	}
	return answerTransition(c, d, t)
}

func (h transitions) find(c *request.Call) (rental.BookingDetails, rental.Transition, error) {
	id, err := contract.ParseUUID(c.Param("transition"))
	if err != nil {
		return rental.BookingDetails{}, rental.Transition{}, contract.Invalid("transition", "must be a UUID")
	}
	d, err := h.visibleBooking(c)
	if err != nil {
		return rental.BookingDetails{}, rental.Transition{}, err
	}
	t, err := h.Rentals.Transition(c.Ctx(), id)
	if err == nil && t.Booking != d.ID {
		err = rental.NoSuchTransition(id)
	}
	return d, t, err
}

func (h transitions) list(c *request.Call) error {
	d, err := h.visibleBooking(c)
	if err != nil {
		return err
	}
	all, err := h.Rentals.OfBooking(c.Ctx(), d.ID)
	if err != nil {
		return err
	}
	return c.Answer(request.Plural(len(all), "transition"), resource.List(all, func(t rental.Transition) *resource.Transition {
		return resource.NewTransition(d, t)
	}))
}

func (h transitions) cancel(c *request.Call) error {
	ctx, cancel := c.Detached(openBudget)
	defer cancel()
	entry := c.Entry(rental.TransitionCancel, 0)
	d, t, err := h.find(c)
	var replayed bool
	if err == nil {
		wanted := rental.Request{Booking: d.ID, Actor: c.Actor, Activity: entry, Key: c.Key, Now: entry.At}
		t, replayed, err = h.Rentals.Cancel(ctx, wanted, t.ID)
	}
	if err != nil {
		h.audit.bookingRefused(ctx, entry, c.BookingID(), d, err)
		return err
	}
	if d, t, err = h.await(c, entry, t, replayed, cancelWait); err != nil {
		return err
	}
	return answerTransition(c, d, t)
}

// positionOf returns the position of the body; nil: there is none.
func positionOf(c *request.Call) *telematics.Position {
	latitude, hasLatitude := c.Values["latitude"].(json.Number)
	longitude, hasLongitude := c.Values["longitude"].(json.Number)
	if !hasLatitude || !hasLongitude {
		return nil
	}
	var p telematics.Position
	p.Latitude, _ = latitude.Float64() // the contract has checked them
	p.Longitude, _ = longitude.Float64()
	return &p
}

// checkPosition checks that a position is whole.
func checkPosition(c *request.Call, wrong *contract.FieldErrors) error {
	_, hasLatitude := c.Values["latitude"]
	_, hasLongitude := c.Values["longitude"]
	if hasLatitude != hasLongitude {
		wrong.AddIfValid("latitude", "must come with longitude")
	}
	return nil
}

// overrideOf returns why a person ends the rental whatever the vehicle reports; empty: none.
func overrideOf(c *request.Call) string {
	if c.Values["override"] == true {
		return c.Text("reason")
	}
	return ""
}

// checkOverride checks that an override has a reason, and a reason its override.
func checkOverride(c *request.Call, wrong *contract.FieldErrors) error {
	switch _, has := c.Values["reason"]; {
	case has && c.Values["override"] != true:
		wrong.AddIfValid("reason", "is only for an override: send override true, or no reason")
	case has:
		checkText(c, "reason", wrong)
	case c.Values["override"] == true:
		wrong.AddIfValid("reason", "is required with override: say why the vehicle is not waited for")
	}
	return nil
}
