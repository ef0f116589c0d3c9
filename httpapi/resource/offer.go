package resource

import (
	"math"

	"motorpool/rental"
	"motorpool/telematics"
)

// Offer is a vehicle that a client can book, with no more of its state than the client needs to
// choose. The plate is shown with the booking.
type Offer struct {
	ID            int64                 `json:"id"`
	DistanceM     int64                 `json:"distance_m"`
	Brand         string                `json:"brand"`
	Model         string                `json:"model"`
	Year          *int                  `json:"year"`
	Color         *string               `json:"color"`
	Category      *string               `json:"category"`
	Image         *string               `json:"image"`
	Features      []string              `json:"features"`
	Powertrain    telematics.Powertrain `json:"powertrain"`
	EnergyPercent *float64              `json:"energy_percent"`
	RangeKm       *float64              `json:"range_km"`
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
	d := newDescription(o.Vehicle)
	body := Offer{
		ID: int64(o.Vehicle.ID), DistanceM: o.Metres, Brand: d.Brand, Model: d.Model, Year: d.Year, Color: d.Color, Category: d.Category,
		Image: d.Image, Features: d.Features, Powertrain: o.Vehicle.Powertrain,
		EnergyPercent: rounded(o.Energy), RangeKm: rounded(o.Range),
		Location: OfferLocation{Latitude: o.Position.Latitude, Longitude: o.Position.Longitude, Area: OrNull(area)},
		Pricing:  NewPricing(o.Booking),
	}
	if o.Station != nil {
		body.Location.Station = &OfferStation{ID: int64(o.Station.ID), Name: o.Station.Name}
	}
	return body
}

// rounded returns a number without decimals: an app that asks often learns nothing more from them.
func rounded(n *float64) *float64 {
	if n == nil {
		return nil
	}
	return new(math.Round(*n))
}

// FreeTime is a time at which a vehicle is free.
type FreeTime struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// NewFreeTime returns a free time.
func NewFreeTime(s rental.Span) FreeTime { return FreeTime{Timestamp(s.From), Timestamp(s.To)} }
