package resource

import (
	"math"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// Utilisation is how much of a time vehicles were rented.
type Utilisation struct {
	From         string                           `json:"from"`
	To           string                           `json:"to"`
	Vehicles     int                              `json:"vehicles"`
	UsedHours    float64                          `json:"used_hours"`
	Percent      *float64                         `json:"percent"` // null: there are no vehicles
	VehicleHours map[telematics.VehicleID]float64 `json:"vehicle_hours"`
}

// NewUtilisation returns the utilisation within a time, with that of each vehicle or without.
func NewUtilisation(uses []rental.Use, from, to time.Time, each bool) Utilisation {
	body := Utilisation{From: Timestamp(from), To: Timestamp(to), Vehicles: len(uses)}
	if each {
		body.VehicleHours = make(map[telematics.VehicleID]float64, len(uses))
	}
	var all time.Duration
	for _, u := range uses {
		all += u.Rented
		if each {
			body.VehicleHours[u.Vehicle] = hoursOf(u.Rented)
		}
	}
	body.UsedHours = hoursOf(all)
	if len(uses) > 0 {
		body.Percent = new(math.Round(1000*all.Hours()/(float64(len(uses))*to.Sub(from).Hours())) / 10)
	}
	return body
}

// hoursOf returns hours with two decimals.
func hoursOf(d time.Duration) float64 { return math.Round(d.Hours()*100) / 100 }
