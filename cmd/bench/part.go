package main

// part is those vehicles of the record that take part in a load: so many, evenly over the range of ids, so that what is read and
// written for them lies as far apart as in the whole fleet.
type part struct {
	Vehicles int
	Every    int `default:"1" help:"Of so many vehicles one takes part: the first, then the one so much further."`
}

// partOf spreads so many vehicles over a fleet.
func partOf(fleet, vehicles int) part {
	vehicles = min(vehicles, fleet)
	return part{Vehicles: vehicles, Every: fleet / vehicles}
}

// id is that of the vehicle at a place, from 0.
func (p part) id(place int) int { return 1 + place*p.Every }

// place is where a vehicle is; false: it does not take part.
func (p part) place(id int) (int, bool) {
	place := (id - 1) / p.Every
	return place, id == p.id(place) && place >= 0 && place < p.Vehicles
}
