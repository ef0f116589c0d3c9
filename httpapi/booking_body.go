package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

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
