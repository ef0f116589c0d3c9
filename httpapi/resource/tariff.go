package resource

import (
	"encoding/json"
	"time"

	"motorpool/rental"
)

// DefaultCategory stands for the tariff of vehicles whose category has none.
const DefaultCategory = "default"

// Tariff is what the vehicles of a category cost, in a currency. Null amounts are not charged.
type Tariff struct {
	Category       string          `json:"category"`
	Version        int             `json:"version"`
	Currency       rental.Currency `json:"currency"`
	PerMinute      *json.Number    `json:"per_minute"`
	PerHour        *json.Number    `json:"per_hour"`
	PerDay         *json.Number    `json:"per_day"`
	PerKm          *json.Number    `json:"per_km"`
	IncludedKm     int             `json:"included_km"`
	PerPauseMinute *json.Number    `json:"per_pause_minute"`
	PerReservation *json.Number    `json:"per_reservation_minute"`
	FreeMinutes    int64           `json:"free_reservation_minutes"`
	Minimum        *json.Number    `json:"minimum"`
	Deposit        *json.Number    `json:"deposit"`
	PluggedIn      bool            `json:"plugged_in"`
	Description    string          `json:"description"`
}

// NewTariff returns a tariff.
func NewTariff(p rental.Plan, c rental.Currency) Tariff {
	amount := func(m rental.Minor) *json.Number {
		if m == 0 {
			return nil
		}
		return new(Money(c, m))
	}
	t := Tariff{
		Category: p.Category, Version: p.Version, Currency: c, PerMinute: amount(p.Minute), PerHour: amount(p.Hour),
		PerDay: amount(p.Day), PerKm: amount(p.Kilometer), IncludedKm: p.IncludedKm, PerPauseMinute: amount(p.PauseMinute),
		PerReservation: amount(p.ReserveMinute), FreeMinutes: int64(p.FreeReserve / time.Minute), Minimum: amount(p.Minimum),
		Deposit: amount(p.Deposit), PluggedIn: p.PluggedIn, Description: p.Words(c),
	}
	if t.Category == "" {
		t.Category = DefaultCategory
	}
	return t
}

// PriceLine is a part of a price. Unit, quantity and rate are null where there is the amount alone.
type PriceLine struct {
	Kind     rental.LineKind  `json:"kind"`
	Quantity *json.Number     `json:"quantity"`
	Unit     *rental.LineUnit `json:"unit"`
	Rate     *json.Number     `json:"rate"`
	Amount   json.Number      `json:"amount"`
}

// NewPriceLines returns the lines of a price in a currency.
func NewPriceLines(c rental.Currency, lines []rental.Line) []PriceLine {
	return List(lines, func(l rental.Line) PriceLine {
		body := PriceLine{Kind: l.Kind, Unit: OrNull(l.Unit), Amount: Money(c, l.Amount)}
		if l.Unit != "" {
			body.Quantity, body.Rate = new(hours(l.Quantity)), new(Money(c, l.Rate))
		}
		return body
	})
}
