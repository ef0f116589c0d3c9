package resource

import "motorpool/telematics"

// Agency is an agency, with how much it owns.
type Agency struct {
	ID       int64  `json:"id"`
	Code     string `json:"code"`
	Name     string `json:"name"`
	Vehicles int    `json:"vehicles"`
	Stations int    `json:"stations"`
}

// NewAgency returns an agency.
func NewAgency(a telematics.ListedAgency) Agency {
	return Agency{ID: int64(a.ID), Code: a.Code, Name: a.Name, Vehicles: a.Vehicles, Stations: a.Stations}
}

// Station is a place of an agency.
type Station struct {
	BookingStation
	AgencyID int64 `json:"agency_id"`
}

// NewStation returns a station.
func NewStation(s telematics.Station) Station {
	return Station{BookingStation: newBookingStation(s), AgencyID: int64(s.AgencyID)}
}
