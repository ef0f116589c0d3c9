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

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/rental"
	"motorpool/telematics"
)

// amend adds a change of the booking that the path names, as it is decided by the call.
func (r router) amend(path, activity string, decide amendment, options ...func(*gate)) {
	r.post(path, activity, r.amends(activity, decide), options...)
}

// amendment returns how a call wants a booking changed.
type amendment func(call *call, now time.Time) rental.Decision

// amends returns the handler of a change of a booking. It answers with the booking as it is then.
func (s *server) amends(activity string, decide amendment) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := bookingParam(c)
		if err != nil {
			return err
		}
		call, now := callOf(c), s.Now()
		ctx, cancel := s.unhurried(c)
		defer cancel()
		var seen rental.Dossier
		decision := decide(call, now)
		request := rental.Request{Booking: id, Actor: call.actor, Line: call.line(activity, 0, now), Key: call.key, Now: now}
		after, replayed, err := s.Bookings.Amend(ctx, request, func(d rental.Dossier) (rental.Change, error) {
			seen = d
			return decision(d)
		})
		if err = asFields(err); err != nil {
			s.noteRefused(ctx, request.Line, id, seen, err)
			return err
		}
		if replayed {
			s.noteReplayed(ctx, request.Line, after)
		} else if s.Nudge != nil {
			s.Nudge()
		}
		markReplayed(c, replayed)
		return s.answerBooking(c, http.StatusOK, changed(activity, after), after)
	}
}

// unhurried returns a context for a change: a caller that hangs up does not leave it half-way, and does not stop it.
func (s *server) unhurried(c echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), s.ReadBudget)
}

// noteRefused records that a booking was not changed, or that this is not known. seen is zero where the actor
// may not see the booking.
func (s *server) noteRefused(ctx context.Context, line telematics.Activity, id rental.BookingID, seen rental.Dossier, refusal error) {
	line.Booking, line.Code, line.Outcome = int64(id), asError(refusal).Code, telematics.NotExecuted
	if line.Code == serviceUnavailable || line.Code == telematics.Internal {
		line.Outcome = telematics.MayHave // the record may have it all the same
	}
	if seen.ID != 0 {
		line.Agency, line.Vehicle = seen.Agency, seen.VehicleID
	}
	s.Refusals.Note(context.WithoutCancel(ctx), line)
}

// noteReplayed writes down that a request was answered from an earlier one. It says nothing new of the booking.
func (s *server) noteReplayed(ctx context.Context, line telematics.Activity, d rental.Dossier) {
	line.Booking, line.Agency, line.Vehicle, line.Code = int64(d.ID), d.Agency, d.VehicleID, telematics.IdempotencyReplayed
	s.Refusals.Note(context.WithoutCancel(ctx), line)
}

// booking returns the booking that the path names. One that is not the actor's to see does not exist for it.
func (s *server) booking(c echo.Context) (rental.Dossier, error) {
	id, err := bookingParam(c)
	if err != nil {
		return rental.Dossier{}, err
	}
	d, err := s.Bookings.Dossier(c.Request().Context(), id)
	if err == nil && !d.VisibleTo(callOf(c).actor) {
		err = rental.NoSuchBooking(id)
	}
	if err != nil {
		return rental.Dossier{}, err
	}
	return d, nil
}

// answerBooking answers with a booking, as much of it as is for the actor's eyes.
func (s *server) answerBooking(c echo.Context, status int, message string, d rental.Dossier) error {
	if callOf(c).actor.Role == telematics.Client {
		return s.answerClient(c, status, message, newBookingBody(d, s.Now()))
	}
	return s.write(c, status, envelope{Success: true, Message: message, Data: newAdminBookingBody(d, s.Now())})
}

// asFields turns a field error of the domain into the field errors of an answer.
func asFields(err error) error {
	var field *rental.FieldError
	if errors.As(err, &field) {
		return contract.Invalid(field.Field, field.Message)
	}
	return err
}

// stands says where a booking is in its life.
func stands(d rental.Dossier) string {
	return fmt.Sprintf("The booking %s is %s.", d.Reference, d.State)
}

// changed words what was done to a booking.
func changed(activity string, d rental.Dossier) string {
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
		return stands(d)
	}
}

// bookingBody is the booking of the interface, section 2.3. What is not known is null.
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
	*adminBookingBody                     // absent: a client asks
}

type bookingVehicleBody struct {
	ID       int64    `json:"id"`
	Plate    string   `json:"plate_number"`
	Brand    string   `json:"brand"`
	Model    string   `json:"model"`
	Year     *int     `json:"year"`
	Color    *string  `json:"color"`
	Category *string  `json:"category"`
	Image    *string  `json:"image"`
	Features []string `json:"features"`
}

type bookingStationBody struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	Address   string  `json:"address"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// pricingBody has amounts as numbers with all the currency's digits. No float comes near them.
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

func newBookingBody(d rental.Dossier, now time.Time) bookingBody {
	payment := d.Payment()
	return bookingBody{
		ID: int64(d.ID), Reference: d.Reference, Status: d.State, StartDate: timestamp(d.Start), EndDate: timestamp(d.End),
		ActualStart: timestampOrNull(d.ActualStart), ActualEnd: timestampOrNull(d.ActualEnd),
		Vehicle: newBookingVehicleBody(d.Vehicle), Pickup: newBookingStationBody(d.Pickup), Dropoff: newBookingStationBody(d.Dropoff),
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

func newBookingVehicleBody(v telematics.Vehicle) bookingVehicleBody {
	return bookingVehicleBody{
		ID: int64(v.ID), Plate: v.Plate, Brand: v.Brand, Model: v.Model, Year: orNull(v.Year), Color: orNull(v.Color),
		Category: orNull(v.Category), Image: orNull(v.Image), Features: append([]string{}, v.Features...),
	}
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

// text returns a text of the body, which the contract has checked.
func (call *call) text(name string) string {
	text, _ := call.values[name].(string)
	return text
}

// time returns a time of the body, which the contract has checked.
func (call *call) time(name string) time.Time {
	t, err := contract.ParseTime(call.text(name))
	if err != nil {
		return time.Time{}
	}
	return t
}

// wholeNumber returns an integer of the body, which may be written as 42.0; zero: there is none, or it has more than 64 bits.
func (call *call) wholeNumber(name string) int64 { return wholeNumber(call.values[name]) }

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

// amount returns the amount of the body in a currency, exactly as it was written; zero: there is none.
func (call *call) amount(c rental.Currency) (rental.Minor, error) {
	number, ok := call.values["amount"].(json.Number)
	if !ok {
		return 0, nil
	}
	m, err := c.Parse(number.String())
	if err != nil {
		return 0, contract.Invalid("amount", err.Error())
	}
	return m, nil
}

// checkAmount checks what can be said of an amount before its currency is known.
func checkAmount(call *call, wrong *contract.FieldErrors) {
	number, ok := call.values["amount"].(json.Number)
	if !ok {
		return
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number.String()), "e")
	if strings.HasPrefix(mantissa, "-") || !strings.ContainsAny(mantissa, "123456789") {
		wrong.AddIfValid("amount", "must be more than 0")
	}
}

// checkText checks a text that a person wrote: it says something, and no store refuses it.
func checkText(call *call, name string, wrong *contract.FieldErrors) {
	text := call.text(name)
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
		wrong.AddIfValid(name, "must be text that is not blank, without NUL")
	}
}
