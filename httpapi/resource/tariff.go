package resource

import (
	"cmp"
	"encoding/json"

	"motorpool/rental"
)

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
	FreeMinutes    rental.Minutes  `json:"free_reservation_minutes"`
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
	return Tariff{
		Category: cmp.Or(p.Category, rental.DefaultCategory), Version: p.Version, Currency: c,
		PerMinute: amount(p.Minute), PerHour: amount(p.Hour), PerDay: amount(p.Day),
		PerKm: amount(p.Kilometre), IncludedKm: p.IncludedKm, PerPauseMinute: amount(p.PauseMinute),
		PerReservation: amount(p.ReserveMinute), FreeMinutes: p.FreeReserve,
		Minimum: amount(p.Minimum), Deposit: amount(p.Deposit), PluggedIn: p.PluggedIn, Description: p.Words(c),
	}
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

// RentalRules are an agency's rules for rentals that its clients reserve, start and end themselves.
type RentalRules struct {
	MaxDistance      int                  `json:"max_distance_m"`
	ReturnTo         rental.ReturnPlace   `json:"return_to"`
	StationRadius    int                  `json:"station_radius_m"`
	ReturnDoors      bool                 `json:"return_doors"`
	ReturnWindows    bool                 `json:"return_windows"`
	ReturnTrunk      bool                 `json:"return_trunk"`
	ReturnKey        *rental.KeyPosition  `json:"return_key"` // null: anywhere
	ChargeAtStart    rental.StartCharging `json:"charge_at_start"`
	MaxOpenBookings  int                  `json:"max_open_bookings"`
	MaxUnpaid        int                  `json:"max_unpaid"`
	HoldMinutes      rental.Minutes       `json:"hold_minutes"`
	NoShowMinutes    rental.Minutes       `json:"no_show_minutes"`
	MinLengthMinutes rental.Minutes       `json:"min_length_minutes"`
	PositionDecimals int                  `json:"position_decimals"`
	MinEnergyPercent int                  `json:"min_energy_percent"`
}

// NewRentalRules returns rental rules.
func NewRentalRules(r rental.Rules) RentalRules {
	return RentalRules{
		MaxDistance: r.MaxDistance, ReturnTo: r.ReturnTo, StationRadius: r.StationRadius, ReturnDoors: r.ReturnDoors,
		ReturnWindows: r.ReturnWindows, ReturnTrunk: r.ReturnTrunk, ReturnKey: OrNull(r.ReturnKey), ChargeAtStart: r.ChargeAtStart,
		MaxOpenBookings: r.MaxOpenBookings, MaxUnpaid: r.MaxUnpaid, HoldMinutes: r.HoldFor, NoShowMinutes: r.NoShow,
		MinLengthMinutes: r.MinLength, PositionDecimals: r.PositionDecimals, MinEnergyPercent: r.MinEnergyPercent,
	}
}
