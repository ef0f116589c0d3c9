package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

// bookings answers with bookings, and changes them.
type bookings struct{ *server }

// amendment returns the decision that a call requests.
type amendment func(c *request.Call, now time.Time) rental.Decision

// changeHandler returns the handler that changes a booking, and answers with the changed booking.
func (b bookings) changeHandler(activity string, decide amendment) request.Handler {
	return func(c *request.Call) error {
		ctx, cancel := c.Detached(b.ReadBudget)
		defer cancel()
		var seen rental.BookingDetails
		entry := c.Entry(activity, 0)
		decision := decide(c, entry.At)
		wanted := rental.Request{
			Booking: c.BookingID(), Actor: c.Actor, Activity: entry, Key: c.Key, Now: entry.At,
			MoveTo: telematics.VehicleID(c.WholeNumber("vehicle_id")),
		}
		after, replayed, err := b.amend(ctx, wanted, func(d rental.BookingDetails) (rental.Change, error) {
			seen = d
			return decision(d)
		})
		if err = asFields(err); err != nil {
			b.audit.bookingRefused(ctx, entry, wanted.Booking, seen, err)
			return err
		}
		if replayed {
			b.audit.bookingReplayed(ctx, entry, after)
		} else {
			b.Nudge()
			b.BookingChanged(after.Booking)
			if seen.VehicleID != after.VehicleID {
				b.BookingChanged(seen.Booking) // its former vehicle may be free
			}
		}
		c.MarkReplayed(replayed)
		return answerBooking(c, http.StatusOK, changed(activity, after), after)
	}
}

func (b bookings) amend(ctx context.Context, r rental.Request, decide rental.Decision) (rental.BookingDetails, bool, error) {
	if err := b.checkClock(ctx); err != nil {
		return rental.BookingDetails{}, false, err
	}
	return b.Bookings.Amend(ctx, r, decide)
}

// checkClock returns an error where this instance would date a booking by a wrong clock.
func (s *server) checkClock(ctx context.Context) error {
	err := s.CompareClock(ctx)
	if err == nil || request.IsUnavailable(err) { // nothing is known of the clock
		return err
	}
	return &telematics.Error{Code: errorcode.ServiceUnavailable, Retryable: true, RetryAfter: request.RetryUnavailable, Cause: err,
		Message: "The service's clock differs from the database's, so bookings cannot be changed now; nothing was changed. Try again."}
}

// bookingRefused records that a booking was not changed, or that this is unknown. seen is zero if
// the actor may not see the booking, or it was not read.
func (a audit) bookingRefused(
	ctx context.Context, entry telematics.Activity, id rental.BookingID, seen rental.BookingDetails, refusal error,
) {
	entry.Booking, entry.Code = int64(id), request.AsError(refusal).Code
	entry.Outcome = notChanged(entry.Code)
	if seen.ID != 0 {
		entry.Agency, entry.Vehicle = seen.Agency, seen.VehicleID
	}
	a.RecordLater(ctx, entry)
}

// bookingReplayed records that a request was answered with the result of an earlier one.
func (a audit) bookingReplayed(ctx context.Context, entry telematics.Activity, d rental.BookingDetails) {
	entry.Booking, entry.Agency, entry.Vehicle, entry.Code = int64(d.ID), d.Agency, d.VehicleID, telematics.IdempotencyReplayed
	a.RecordLater(ctx, entry)
}

// visibleBooking returns the booking that the path names. One that the actor may not see is
// reported as missing.
func (s *server) visibleBooking(c *request.Call) (rental.BookingDetails, error) {
	d, err := s.Bookings.BookingDetails(c.Ctx(), c.BookingID())
	if err == nil && !d.VisibleTo(c.Actor) {
		return rental.BookingDetails{}, rental.NoSuchBooking(c.BookingID())
	}
	return d, err
}

func (b bookings) get(c *request.Call) error {
	d, err := b.visibleBooking(c)
	if err != nil {
		return err
	}
	return answerBooking(c, http.StatusOK, describe(d), d)
}

// answerBooking answers with the fields of a booking that the actor's role may see.
func answerBooking(c *request.Call, status int, message string, d rental.BookingDetails) error {
	if c.Actor.Role == telematics.Client {
		return c.AnswerClient(status, message, resource.NewBooking(d, c.Now()))
	}
	return c.AnswerWith(status, message, resource.NewAdminBooking(d, c.Now()), nil)
}

// asFields converts one or several field errors of the domain to the field errors of an answer.
func asFields(err error) error {
	list := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		list = several.Unwrap()
	}
	wrong := &contract.FieldErrors{}
	for _, one := range list {
		var field *telematics.FieldError
		if errors.As(one, &field) {
			wrong.Add(field.Field, field.Message)
		}
	}
	if refused := wrong.Err(); refused != nil {
		return refused
	}
	return err
}

// describe names the state of a booking.
func describe(d rental.BookingDetails) string {
	if !d.PausedSince.IsZero() {
		return fmt.Sprintf("The booking %s is paused.", d.Reference)
	}
	return fmt.Sprintf("The booking %s is %s.", d.Reference, d.State)
}

// changed returns the sentence of the answer to a change of a booking.
func changed(activity string, d rental.BookingDetails) string {
	switch activity {
	case rental.BookingExtend:
		return fmt.Sprintf("The booking %s ends at %s.", d.Reference, resource.Timestamp(d.End))
	case rental.BookingMove:
		return fmt.Sprintf("The booking %s has the vehicle %s.", d.Reference, d.Vehicle.Plate)
	case rental.BookingFee:
		return fmt.Sprintf("The fee was added to the booking %s.", d.Reference)
	case rental.BookingRefund:
		return fmt.Sprintf("The refund of the booking %s is on its way.", d.Reference)
	case rental.BookingCapture:
		return fmt.Sprintf("The capture from the deposit of the booking %s is on its way.", d.Reference)
	default:
		return describe(d)
	}
}

func (b bookings) list(c *request.Call) error {
	p := c.Page("bookings")
	found, err := b.Bookings.FindBookings(c.Ctx(), rental.BookingQuery{
		Agency:    c.QueryAgency(),
		Reference: strings.ToUpper(c.QueryParam("reference")),
		Client:    c.QueryParam("client"),
		States:    listOf[rental.BookingState](c.QueryParam("status")),
		Vehicle:   telematics.VehicleID(c.QueryInteger("vehicle_id")),
		From:      c.QueryTime("from"),
		To:        c.QueryTime("to"),
		Page:      p.Query(),
	})
	if err != nil {
		return err
	}
	now := c.Now()
	listed, meta := request.Cut(p, found, position)
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "booking"),
		resource.List(listed, func(d rental.BookingDetails) resource.Booking { return resource.NewAdminBooking(d, now) }), meta)
}

// utilisedFor is the time of which the utilisation is reported.
const utilisedFor = 7 * 24 * time.Hour

func (b bookings) utilisation(c *request.Call) error {
	to := c.Now()
	from := to.Add(-utilisedFor)
	found, err := b.Bookings.Utilisation(c.Ctx(), c.QueryAgency(), from, to)
	if err != nil {
		return err
	}
	body := resource.NewUtilisation(found, from, to, c.QueryParam("by") == "vehicle")
	return c.Answer(fmt.Sprintf("%v rental hours of %s", body.UsedHours, request.Plural(len(found), "vehicle")), body)
}

func (b bookings) freeVehicles(c *request.Call) error {
	at := rental.Span{From: c.QueryTime("from"), To: c.QueryTime("to")}
	if err := at.Check(c.Now(), 0, "from", "to"); err != nil {
		return asFields(err)
	}
	free, err := b.Bookings.FindFree(c.Ctx(), c.QueryAgency(), at, c.Now())
	if err != nil {
		return err
	}
	return c.Answer(request.Plural(len(free), "vehicle"), resource.List(free, resource.NewFreeVehicle))
}

func (b bookings) open(c *request.Call) error {
	return b.make(c, newDraft(c), "/api/v1/admin/bookings/")
}

func (b bookings) openOwn(c *request.Call) error {
	draft := newDraft(c)
	draft.Self, draft.Agency, draft.Client = true, c.Actor.Agency, c.Actor.Subject
	draft.QuoteID, _ = contract.ParseUUID(c.Text("quote_id")) // zero where it is absent
	return b.make(c, draft, "/api/v1/client/bookings/")
}

// make creates a booking below a path.
func (b bookings) make(c *request.Call, draft rental.Draft, path string) error {
	ctx, cancel := c.Detached(b.ReadBudget)
	defer cancel()
	entry := c.Entry(rental.BookingCreate, draft.Vehicle)
	err := b.checkClock(ctx)
	var d rental.BookingDetails
	var replayed bool
	if err == nil {
		d, replayed, err = b.Bookings.OpenBooking(ctx, draft, rental.Request{Actor: c.Actor, Activity: entry, Key: c.Key, Now: entry.At})
	}
	if err = asFields(err); err != nil {
		entry.Agency = draft.Agency
		b.audit.bookingRefused(ctx, entry, 0, rental.BookingDetails{}, err)
		return err
	}
	if replayed {
		b.audit.bookingReplayed(ctx, entry, d)
	} else {
		b.BookingChanged(d.Booking)
	}
	c.MarkReplayed(replayed)
	c.SetHeader(echo.HeaderLocation, path+strconv.FormatInt(int64(d.ID), 10))
	return answerBooking(c, http.StatusCreated, describe(d), d)
}

// newDraft returns the booking in the body, which the contract has checked.
func newDraft(c *request.Call) rental.Draft {
	return rental.Draft{
		Agency: telematics.AgencyID(c.WholeNumber("agency_id")), Client: c.Text("client"),
		Vehicle: telematics.VehicleID(c.WholeNumber("vehicle_id")), Start: c.Time("start_date"), End: c.Time("end_date"),
		Pickup:  telematics.StationID(c.WholeNumber("pickup_station_id")),
		Dropoff: telematics.StationID(c.WholeNumber("dropoff_station_id")),
		Method:  rental.MethodID(c.WholeNumber("payment_method_id")),
	}
}

// checkOwnDraft checks what the contract cannot express.
func checkOwnDraft(c *request.Call, wrong *contract.FieldErrors) error {
	if c.Values["quote_id"] == nil {
		requireFields(c, wrong, "is required, unless quote_id is sent", "vehicle_id", "start_date", "end_date")
	}
	return nil
}

// requireFields adds an error for each field of the body that is absent.
func requireFields(c *request.Call, wrong *contract.FieldErrors, message string, names ...string) {
	for _, name := range names {
		if _, sent := c.Values[name]; !sent {
			wrong.AddIfValid(name, message)
		}
	}
}

// checkDraft checks what the contract cannot express.
func checkDraft(c *request.Call, wrong *contract.FieldErrors) error {
	checkText(c, "client", wrong)
	if agency := telematics.AgencyID(c.WholeNumber("agency_id")); !c.Actor.Sees(agency) {
		return request.Forbidden("Your access token is for agency %d; it cannot create bookings for another one.", c.Actor.Agency)
	}
	return nil
}

func moveBooking(*request.Call, time.Time) rental.Decision { return rental.Move }

func startBooking(_ *request.Call, now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Begin(now) }
}

func endBooking(_ *request.Call, now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Finish(now) }
}

func fineBooking(c *request.Call, now time.Time) rental.Decision {
	return withAmount(c, func(d rental.BookingDetails, amount rental.Minor) (rental.Change, error) {
		return d.Fine(now, rental.Fee{Kind: c.Text("kind"), Amount: amount, Reason: c.Text("reason")})
	})
}

func refundBooking(c *request.Call, now time.Time) rental.Decision {
	return withAmount(c, func(d rental.BookingDetails, amount rental.Minor) (rental.Change, error) {
		if id, err := contract.ParseUUID(c.Text("charge_id")); err == nil {
			return d.RefundCharge(now, id, amount, c.Text("reason"))
		}
		return d.Refund(now, amount, c.Text("reason"))
	})
}

func captureDeposit(c *request.Call, now time.Time) rental.Decision {
	return withAmount(c, func(d rental.BookingDetails, amount rental.Minor) (rental.Change, error) {
		return d.CaptureDeposit(now, amount, c.Text("reason"))
	})
}

// withAmount passes the amount of the body, in the booking's currency, to decide.
func withAmount(
	c *request.Call, decide func(rental.BookingDetails, rental.Minor) (rental.Change, error),
) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) {
		amount, err := amount(c, d.Price.Currency)
		if err != nil {
			return rental.Change{}, err
		}
		return decide(d, amount)
	}
}

// amount returns the amount of the body in a currency, exactly as it was written; zero: there is
// none.
func amount(c *request.Call, currency rental.Currency) (rental.Minor, error) {
	number, ok := c.Values["amount"].(json.Number)
	if !ok {
		return 0, nil
	}
	m, err := currency.Parse(number.String())
	if err != nil {
		return 0, contract.Invalid("amount", err.Error())
	}
	return m, nil
}

// checkAmount checks an amount as far as that is possible without its currency.
func checkAmount(c *request.Call, wrong *contract.FieldErrors) {
	number, ok := c.Values["amount"].(json.Number)
	if !ok {
		return
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number.String()), "e")
	if strings.HasPrefix(mantissa, "-") || !strings.ContainsAny(mantissa, "123456789") {
		wrong.AddIfValid("amount", "must be more than 0")
	}
}

// checkText adds an error for text in which nothing is seen, or with a NUL, which Postgres refuses.
func checkText(c *request.Call, name string, wrong *contract.FieldErrors) {
	text := c.Text(name)
	if telematics.Clean(text) == "" || strings.ContainsRune(text, 0) {
		wrong.AddIfValid(name, "must be a string that is not blank, without NUL")
	}
}

// checkMoney checks what the contract cannot express.
func checkMoney(c *request.Call, wrong *contract.FieldErrors) error {
	checkAmount(c, wrong)
	checkText(c, "reason", wrong)
	return nil
}

// checkRefund checks that the body has either an amount or full.
func checkRefund(c *request.Call, wrong *contract.FieldErrors) error {
	_, hasAmount := c.Values["amount"]
	full, hasFull := c.Values["full"]
	switch {
	case hasAmount && hasFull:
		wrong.AddIfValid("full", "must not be combined with amount: send one of the two")
	case hasFull && full != true:
		wrong.AddIfValid("full", "must be true; to give back a part, send amount instead")
	case !hasAmount && !hasFull:
		wrong.AddIfValid("amount", `is required: must be a number, not in quotes; to give back all that is left, send "full": true instead`)
	}
	return checkMoney(c, wrong)
}
