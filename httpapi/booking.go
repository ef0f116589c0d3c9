package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// bookings answers with bookings, and changes them.
type bookings struct {
	record     Bookings
	payments   Payments
	audit      *audit
	nudge      func()        // nil: nothing collects
	readBudget time.Duration // of a change
}

// amendment returns how a call wants a booking changed.
type amendment func(c *call, now time.Time) rental.Decision

// amends returns the handler of a change of a booking. It answers with the booking as it is then.
func (b bookings) amends(activity string, decide amendment) handler {
	return func(c *call) error {
		ctx, cancel := detached(c, b.readBudget)
		defer cancel()
		var seen rental.BookingDetails
		entry := c.entry(activity, 0)
		decision := decide(c, entry.At)
		request := rental.Request{Booking: c.bookingID(), Actor: c.actor, Activity: entry, Key: c.key, Now: entry.At}
		after, replayed, err := b.record.Amend(ctx, request, func(d rental.BookingDetails) (rental.Change, error) {
			seen = d
			return decision(d)
		})
		if err = asFields(err); err != nil {
			b.audit.bookingRefused(ctx, entry, request.Booking, seen, err)
			return err
		}
		if replayed {
			b.audit.bookingReplayed(ctx, entry, after)
		} else if b.nudge != nil {
			b.nudge()
		}
		c.markReplayed(replayed)
		return answerBooking(c, http.StatusOK, changed(activity, after), after)
	}
}

// detached returns a context for a change, which is completed even where its caller hangs up.
func detached(c *call, budget time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.ctx()), budget)
}

// bookingRefused records that a booking was not changed, or that it is unknown whether it was. seen
// is zero where the actor may not see the booking.
func (a *audit) bookingRefused(ctx context.Context, entry telematics.Activity, id rental.BookingID, seen rental.BookingDetails, refusal error) {
	entry.Booking, entry.Code = int64(id), asError(refusal).Code
	entry.Outcome = notChanged(entry.Code)
	if seen.ID != 0 {
		entry.Agency, entry.Vehicle = seen.Agency, seen.VehicleID
	}
	a.note(ctx, entry)
}

// bookingReplayed records that a request was answered from an earlier one.
func (a *audit) bookingReplayed(ctx context.Context, entry telematics.Activity, d rental.BookingDetails) {
	entry.Booking, entry.Agency, entry.Vehicle, entry.Code = int64(d.ID), d.Agency, d.VehicleID, telematics.IdempotencyReplayed
	a.note(ctx, entry)
}

// visibleBooking returns the booking that the path names. One that the actor may not see does not
// exist for it.
func visibleBooking(c *call, record Bookings) (rental.BookingDetails, error) {
	d, err := record.BookingDetails(c.ctx(), c.bookingID())
	if err == nil && !d.VisibleTo(c.actor) {
		return rental.BookingDetails{}, rental.NoSuchBooking(c.bookingID())
	}
	return d, err
}

// get answers GET /client/bookings/{booking} and GET /admin/bookings/{booking}.
func (b bookings) get(c *call) error {
	d, err := visibleBooking(c, b.record)
	if err != nil {
		return err
	}
	return answerBooking(c, http.StatusOK, describe(d), d)
}

// answerBooking answers with as much of a booking as the actor may see.
func answerBooking(c *call, status int, message string, d rental.BookingDetails) error {
	if c.actor.Role == telematics.Client {
		return c.answerClient(status, message, newBookingBody(d, c.now()))
	}
	return c.write(status, envelope{Success: true, Message: message, Data: newAdminBookingBody(d, c.now())})
}

// asFields turns a field error of the domain into the field errors of an answer.
func asFields(err error) error {
	var field *rental.FieldError
	if errors.As(err, &field) {
		return contract.Invalid(field.Field, field.Message)
	}
	return err
}

// describe names the state of a booking.
func describe(d rental.BookingDetails) string {
	return fmt.Sprintf("The booking %s is %s.", d.Reference, d.State)
}

// changed returns the sentence of the answer to a change of a booking.
func changed(activity string, d rental.BookingDetails) string {
	switch activity {
	case rental.BookingExtend:
		return fmt.Sprintf("The booking %s ends at %s.", d.Reference, timestamp(d.End))
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

// bookingBody is the booking of the interface, section 2.3. Unknown values are null.
type bookingBody struct {
	ID                int64               `json:"id"`
	Reference         string              `json:"reference"`
	Status            rental.BookingState `json:"status"`
	StartDate         string              `json:"start_date"`
	EndDate           string              `json:"end_date"`
	ActualStart       *string             `json:"actual_start"`
	ActualEnd         *string             `json:"actual_end"`
	Vehicle           bookingVehicleBody  `json:"vehicle"`
	Pickup            bookingStationBody  `json:"pickup_station"`
	Dropoff           bookingStationBody  `json:"dropoff_station"`
	Pricing           pricingBody         `json:"pricing"`
	Payment           bookingPaymentBody  `json:"payment"`
	Fees              []feeBody           `json:"fees"`
	CanCancel         bool                `json:"can_cancel"`
	CanExtend         bool                `json:"can_extend"`
	CreatedAt         string              `json:"created_at"`
	*adminBookingBody                     // absent in answers to clients
}

type bookingVehicleBody struct {
	ID int64 `json:"id"`
	descriptionBody
}

type bookingStationBody struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	Address   string  `json:"address"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// pricingBody has amounts as numbers with all the currency's digits. None is ever a float.
type pricingBody struct {
	DurationHours json.Number     `json:"duration_hours"`
	HourlyRate    json.Number     `json:"hourly_rate"`
	Subtotal      json.Number     `json:"subtotal"`
	Tax           json.Number     `json:"tax"`
	Deposit       json.Number     `json:"deposit"`
	Total         json.Number     `json:"total"`
	RentalTotal   json.Number     `json:"rental_total"`
	Currency      rental.Currency `json:"currency"`
}

type bookingPaymentBody struct {
	Method   *string              `json:"method"`
	Status   rental.PaymentStatus `json:"status"`
	PaidAt   *string              `json:"paid_at"`
	Charged  json.Number          `json:"charged"`
	Refunded json.Number          `json:"refunded"`
	Held     json.Number          `json:"held"`
}

// feeBody is a fee as its client sees it.
type feeBody struct {
	Kind   string             `json:"kind"`
	Amount json.Number        `json:"amount"`
	State  rental.ChargeState `json:"state"`
	At     string             `json:"at"`
}

func newBookingBody(d rental.BookingDetails, now time.Time) bookingBody {
	payment := d.Payment()
	return bookingBody{
		ID: int64(d.ID), Reference: d.Reference, Status: d.State, StartDate: timestamp(d.Start), EndDate: timestamp(d.End),
		ActualStart: timestampOrNull(d.ActualStart), ActualEnd: timestampOrNull(d.ActualEnd),
		Vehicle: bookingVehicleBody{int64(d.Vehicle.ID), newDescriptionBody(d.Vehicle)}, Pickup: newBookingStationBody(d.Pickup), Dropoff: newBookingStationBody(d.Dropoff),
		Pricing: newPricingBody(d.Price), Payment: newBookingPaymentBody(payment, d.Price.Currency), Fees: newFeeBodies(d.Charges),
		CanCancel: d.CanCancel(now), CanExtend: d.CanExtend(now), CreatedAt: timestamp(d.Created),
	}
}

func newBookingPaymentBody(p rental.Payment, c rental.Currency) bookingPaymentBody {
	return bookingPaymentBody{
		Method: orNull(p.Method), Status: p.Status, PaidAt: timestampOrNull(p.PaidAt),
		Charged: money(c, p.Charged), Refunded: money(c, p.Refunded), Held: money(c, p.Held),
	}
}

func newFeeBodies(charges []rental.Charge) []feeBody {
	fees := []feeBody{}
	for _, c := range charges {
		if c.Kind == rental.FeeCharge {
			fees = append(fees, feeBody{Kind: c.Fee, Amount: money(c.Currency, c.Amount), State: c.State, At: timestamp(c.Created)})
		}
	}
	return fees
}

func newBookingStationBody(s telematics.Station) bookingStationBody {
	return bookingStationBody{ID: int64(s.ID), Name: s.Name, Address: s.Address, Latitude: s.Latitude, Longitude: s.Longitude}
}

func newPricingBody(p rental.Price) pricingBody {
	amount := func(m rental.Minor) json.Number { return money(p.Currency, m) }
	return pricingBody{
		DurationHours: hours(p.Hours), HourlyRate: amount(p.HourlyRate), Subtotal: amount(p.Subtotal), Tax: amount(p.TaxDue),
		Deposit: amount(p.Deposit), Total: amount(p.Total()), RentalTotal: amount(p.Subtotal + p.TaxDue), Currency: p.Currency,
	}
}

// money writes an amount as a JSON number, exactly.
func money(c rental.Currency, m rental.Minor) json.Number { return json.Number(c.Format(m)) }

// hours writes a number of hundredths as a JSON number, exactly: 8, 7.5, 0.25.
func hours(h rental.Hundredths) json.Number {
	whole, rest := int64(h)/100, int64(h)%100
	if rest == 0 {
		return json.Number(strconv.FormatInt(whole, 10))
	}
	return json.Number(strconv.FormatInt(whole, 10) + "." + strings.TrimRight(strconv.FormatInt(100+rest, 10)[1:], "0"))
}

// The contract has checked the values of the body.

func (c *call) text(name string) string {
	text, _ := c.values[name].(string)
	return text
}

func (c *call) time(name string) time.Time {
	t, _ := contract.ParseTime(c.text(name))
	return t
}

// wholeNumber returns an integer of the body, which may be written as 42.0; zero: there is none, or
// it has more than 64 bits.
func (c *call) wholeNumber(name string) int64 { return wholeNumber(c.values[name]) }

func wholeNumber(v any) int64 {
	number, _ := v.(json.Number)
	if n, err := number.Int64(); err == nil {
		return n
	}
	f, err := number.Float64()
	if err != nil || math.Abs(f) > maxExact {
		return 0
	}
	return int64(f)
}

// maxExact is the largest integer up to which a float64 has every one.
const maxExact = 1 << 53

// amount returns the amount of the body in a currency, exactly as it was written; zero: there is
// none.
func (c *call) amount(currency rental.Currency) (rental.Minor, error) {
	number, ok := c.values["amount"].(json.Number)
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
func checkAmount(c *call, wrong *contract.FieldErrors) {
	number, ok := c.values["amount"].(json.Number)
	if !ok {
		return
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number.String()), "e")
	if strings.HasPrefix(mantissa, "-") || !strings.ContainsAny(mantissa, "123456789") {
		wrong.AddIfValid("amount", "must be more than 0")
	}
}

// checkText refuses text that says nothing, or that Postgres refuses.
func checkText(c *call, name string, wrong *contract.FieldErrors) {
	text := c.text(name)
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
		wrong.AddIfValid(name, "must be text that is not blank, without NUL")
	}
}
