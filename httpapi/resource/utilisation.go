package resource

import (
	"math"
	"time"

	"motorpool/rental"
)

// Utilisation is how much of a time vehicles were rented.
type Utilisation struct {
	From      string   `json:"from"`
	To        string   `json:"to"`
	Vehicles  int      `json:"vehicles"`
	UsedHours float64  `json:"used_hours"`
	Percent   *float64 `json:"percent"` // null: there are no vehicles
}

// NewUtilisation returns the utilisation within a time.
func NewUtilisation(u rental.Utilisation, from, to time.Time) Utilisation {
	body := Utilisation{
		From: Timestamp(from), To: Timestamp(to), Vehicles: u.Vehicles, UsedHours: math.Round(u.Used.Hours()*100) / 100,
	}
	if u.Vehicles > 0 {
		body.Percent = new(math.Round(1000*u.Used.Hours()/(float64(u.Vehicles)*to.Sub(from).Hours())) / 10)
	}
	return body
}
