package resource

import (
	"encoding/json"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// Booking is the booking of the interface, section 2.3. Unknown values are null.
type Booking struct {
	ID            int64               `json:"id"`
	Reference     string              `json:"reference"`
	Status        rental.BookingState `json:"status"`
	StartDate     string              `json:"start_date"`
	EndDate       string              `json:"end_date"`
	ActualStart   *string             `json:"actual_start"`
	ActualEnd     *string             `json:"actual_end"`
	Vehicle       BookingVehicle      `json:"vehicle"`
	Pickup        BookingStation      `json:"pickup_station"`
	Dropoff       BookingStation      `json:"dropoff_station"`
	Pricing       Pricing             `json:"pricing"`
	Payment       BookingPayment      `json:"payment"`
	Fees          []Fee               `json:"fees"`
	CanCancel     bool                `json:"can_cancel"`
	CanExtend     bool                `json:"can_extend"`
	ReservedUntil *string             `json:"reserved_until"` // null: at its end
	Paused        bool                `json:"paused"`
	Transition    *Transition         `json:"transition"` // the newest one; null: none
	CreatedAt     string              `json:"created_at"`
	*AdminBooking                     // absent in answers to clients
}

type BookingVehicle struct {
	ID int64 `json:"id"`
	Description
}

// BookedVehicle is the state of a vehicle that its client sees, in the words of the vehicle status.
type BookedVehicle struct {
	ID            int64    `json:"id"`
	Plate         string   `json:"plate_number"`
	Location      Section  `json:"location"`
	IsLocked      *bool    `json:"is_locked"`
	EnergyPercent *float64 `json:"energy_percent"` // null: never reported
	RangeKm       *float64 `json:"range_km"`       // likewise
}

// NewBookedVehicle returns a vehicle as the client who has booked it sees it. address is that of
// its position; nil: unknown.
func NewBookedVehicle(t telematics.Twin, address *string) BookedVehicle {
	known := t.Snapshot.For(t.Powertrain)
	return BookedVehicle{
		ID: int64(t.ID), Plate: t.Plate, Location: newLocation(known, address), IsLocked: known.Flag(telematics.IsLocked),
		EnergyPercent: known.Number(energyOf(t.Powertrain)), RangeKm: known.Number(telematics.RangeKm),
	}
}

type BookingStation struct {
	ID        int64   `json:"id"`
	Name      string  `json:"name"`
	Address   string  `json:"address"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// Pricing has amounts as numbers with all the currency's digits. They are never floats.
type Pricing struct {
	DurationHours json.Number     `json:"duration_hours"`
	HourlyRate    json.Number     `json:"hourly_rate"`
	Subtotal      json.Number     `json:"subtotal"`
	Tax           json.Number     `json:"tax"`
	Deposit       json.Number     `json:"deposit"`
	Total         json.Number     `json:"total"`
	RentalTotal   json.Number     `json:"rental_total"`
	Currency      rental.Currency `json:"currency"`
	Lines         []PriceLine     `json:"lines"`
	Tariff        *Tariff         `json:"tariff"` // null: hourly_rate alone
}

type BookingPayment struct {
	Method   *string              `json:"method"`
	Status   rental.PaymentStatus `json:"status"`
	PaidAt   *string              `json:"paid_at"`
	Charged  json.Number          `json:"charged"`
	Refunded json.Number          `json:"refunded"`
	Held     json.Number          `json:"held"`
	Final    bool                 `json:"final"`
}

// Fee is a fee as its client sees it.
type Fee struct {
	Kind   string             `json:"kind"`
	Amount json.Number        `json:"amount"`
	State  rental.ChargeState `json:"state"`
	At     string             `json:"at"`
}

// NewBooking returns a booking as its client sees it.
func NewBooking(d rental.BookingDetails, now time.Time) Booking {
	payment := d.Payment()
	body := Booking{
		ID: int64(d.ID), Reference: d.Reference, Status: d.State, StartDate: Timestamp(d.Start),
		EndDate: Timestamp(d.End), ActualStart: TimestampOrNull(d.ActualStart), ActualEnd: TimestampOrNull(d.ActualEnd),
		Vehicle: BookingVehicle{
			int64(d.Vehicle.ID), newDescription(d.Vehicle),
		},
		Pickup: newBookingStation(d.Pickup), Dropoff: newBookingStation(d.Dropoff), Pricing: NewPricing(d.Booking),
		Payment: newBookingPayment(payment, d.Price.Currency), Fees: newFees(d.Charges), CanCancel: d.CanCancel(now),
		CanExtend: d.CanExtend(now), ReservedUntil: TimestampOrNull(rental.KeptUntil(d.Booking)), Paused: !d.PausedSince.IsZero(),
		CreatedAt: Timestamp(d.Created),
	}
	if d.Transition != nil {
		body.Transition = NewClientTransition(d, *d.Transition)
	}
	return body
}

func newBookingPayment(p rental.Payment, c rental.Currency) BookingPayment {
	return BookingPayment{
		Method: OrNull(p.Method), Status: p.Status, PaidAt: TimestampOrNull(p.PaidAt),
		Charged: Money(c, p.Charged), Refunded: Money(c, p.Refunded), Held: Money(c, p.Held), Final: p.Final,
	}
}

func newFees(charges []rental.Charge) []Fee {
	fees := []Fee{}
	for _, c := range charges {
		if c.Kind == rental.FeeCharge {
			fees = append(fees, Fee{Kind: c.Fee, Amount: Money(c.Currency, c.Amount), State: c.State, At: Timestamp(c.Created)})
		}
	}
	return fees
}

func newBookingStation(s telematics.Station) BookingStation {
	return BookingStation{ID: int64(s.ID), Name: s.Name, Address: s.Address, Latitude: s.Latitude, Longitude: s.Longitude}
}

// NewPricing returns the price of a booking.
func NewPricing(b rental.Booking) Pricing {
	p := b.Price
	amount := func(m rental.Minor) json.Number { return Money(p.Currency, m) }
	body := Pricing{
		DurationHours: hours(p.Hours), HourlyRate: amount(p.HourlyRate), Subtotal: amount(p.Subtotal), Tax: amount(p.TaxDue),
		Deposit: amount(p.Deposit), Total: amount(p.Total()), RentalTotal: amount(p.Subtotal + p.TaxDue), Currency: p.Currency,
		Lines: NewPriceLines(p.Currency, b.Lines()),
	}
	if b.Plan != nil {
		body.Tariff = new(NewTariff(*b.Plan, p.Currency))
	}
	return body
}

// AdminBooking holds the fields of a booking that only administrators see.
type AdminBooking struct {
	AgencyID   int64    `json:"agency_id"`
	Client     string   `json:"client"`
	Extensions int      `json:"extensions"`
	Limits     Limits   `json:"limits"`
	Charges    []Charge `json:"charges"`
}

// Limits are the highest amounts that an administrator may move.
type Limits struct {
	Refund  json.Number `json:"refund"`
	Capture json.Number `json:"capture"`
	Fee     json.Number `json:"fee"`
}

// NewAdminBooking returns a booking as administrators see it.
func NewAdminBooking(d rental.BookingDetails, now time.Time) Booking {
	body, limits, currency := NewBooking(d, now), d.Limits(), d.Price.Currency
	if d.Transition != nil {
		body.Transition = NewTransition(d, *d.Transition)
	}
	body.AdminBooking = &AdminBooking{
		AgencyID: int64(d.Agency), Client: d.Subject, Extensions: d.Extensions, Charges: List(d.Charges, NewCharge),
		Limits: Limits{Refund: Money(currency, limits.Refund), Capture: Money(currency, limits.Capture), Fee: Money(currency, limits.Fee)},
	}
	return body
}
