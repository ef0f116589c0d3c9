package resource

import (
	"encoding/json"

	"motorpool/rental"
	"motorpool/telematics"
)

// Offer is a vehicle that a client can book, with no more of its state than the client needs to
// choose. The plate is shown with the booking.
type Offer struct {
	ID        int64 `json:"id"`
	DistanceM int64 `json:"distance_m"`
	Appearance
	Powertrain    telematics.Powertrain `json:"powertrain"`
	EnergyPercent *int                  `json:"energy_percent"`
	RangeKm       *int                  `json:"range_km"`
	Location      OfferLocation         `json:"location"`
	Pricing       Pricing               `json:"pricing"`
}

// OfferLocation is where an offered vehicle stands.
type OfferLocation struct {
	Latitude  float64       `json:"latitude"`
	Longitude float64       `json:"longitude"`
	Station   *OfferStation `json:"station"` // null: it stands at none
	Area      *string       `json:"area"`    // null: it stands in none
}

type OfferStation struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// NewOffer returns an offer, which stands in an area; empty: in none.
func NewOffer(o rental.Offer, area string) Offer {
	body := Offer{
		ID: int64(o.Vehicle.ID), DistanceM: o.Metres, Appearance: newDescription(o.Vehicle).Appearance, Powertrain: o.Vehicle.Powertrain,
		EnergyPercent: o.Energy, RangeKm: o.Range,
		Location: OfferLocation{Latitude: o.Position.Latitude, Longitude: o.Position.Longitude, Area: OrNull(area)},
		Pricing:  NewPricing(o.Booking),
	}
	if o.Station != nil {
		body.Location.Station = &OfferStation{ID: int64(o.Station.ID), Name: o.Station.Name}
	}
	return body
}

// FreeTime is a time at which a vehicle is free.
type FreeTime struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// NewFreeTime returns a free time.
func NewFreeTime(s rental.Span) FreeTime { return FreeTime{Timestamp(s.From), Timestamp(s.To)} }

// Quote is a price that is valid for some minutes.
type Quote struct {
	ID        string  `json:"id"`
	ExpiresAt string  `json:"expires_at"`
	VehicleID int64   `json:"vehicle_id"`
	StartDate string  `json:"start_date"`
	EndDate   string  `json:"end_date"`
	Pricing   Pricing `json:"pricing"`
}

// NewQuote returns a quote.
func NewQuote(q rental.Quote) Quote {
	return Quote{
		ID: q.ID.String(), ExpiresAt: Timestamp(q.Expires), VehicleID: int64(q.Booking.VehicleID),
		StartDate: Timestamp(q.Booking.Start), EndDate: Timestamp(q.Booking.End), Pricing: NewPricing(q.Booking),
	}
}

// FreeVehicle is a vehicle that staff can book for a time, and what it then costs.
type FreeVehicle struct {
	VehicleID   int64           `json:"vehicle_id"`
	RentalTotal json.Number     `json:"rental_total"`
	Deposit     json.Number     `json:"deposit"`
	Currency    rental.Currency `json:"currency"`
}

// NewFreeVehicle returns the vehicle of a booking that can be made.
func NewFreeVehicle(b rental.Booking) FreeVehicle {
	p := b.Price
	return FreeVehicle{
		VehicleID: int64(b.VehicleID), RentalTotal: Money(p.Currency, p.Subtotal+p.TaxDue), Deposit: Money(p.Currency, p.Deposit),
		Currency: p.Currency,
	}
}
