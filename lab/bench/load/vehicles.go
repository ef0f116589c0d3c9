package load

import (
	"fmt"
	"strconv"
	"strings"

	"motorpool/telematics"
)

// Roots of topics. The floors have their own, so that the service does not receive their messages.
const (
	ServiceRoot = "motorpool/v1/"
	EchoRoot    = "bench/echo/"
	FairRoot    = "bench/fair/"
	DurableRoot = "bench/durable/"
)

// SerialPrefix begins the serial of each unit.
const SerialPrefix = "356938"

// UnitOf returns the unit of a vehicle, with a serial as long as a real one.
func UnitOf(vehicle int) telematics.Unit {
	return telematics.Unit(fmt.Sprintf("%s%09d", SerialPrefix, vehicle))
}

// VehicleIn returns the vehicle whose unit a topic below a root names; 0: none.
func VehicleIn(topic, root string) int {
	serial, _, _ := strings.Cut(strings.TrimPrefix(topic, root), "/")
	n, _ := strconv.Atoi(strings.TrimPrefix(serial, SerialPrefix))
	return n
}

// Vehicles are those that take part in a load: Count of them, with the ids First, First+Every,
// First+2*Every and so on.
type Vehicles struct{ First, Count, Every int }

// Spread returns a number of vehicles, spread over a fleet, so that what is read and written for
// them is, too.
func Spread(fleet, vehicles int) Vehicles {
	vehicles = min(vehicles, fleet)
	return Vehicles{1, vehicles, fleet / vehicles}
}

// ID returns the id of the nth vehicle, from 0.
func (v Vehicles) ID(n int) int { return v.First + n*v.Every }

// Index is the inverse of ID; false: the vehicle does not take part.
func (v Vehicles) Index(id int) (int, bool) {
	n := (id - v.First) / v.Every
	return n, id == v.ID(n) && n >= 0 && n < v.Count
}

// Turns returns a function that returns the ids of a worker's vehicles in turn. No vehicle belongs
// to two workers.
func (v Vehicles) Turns(worker, workers int) func() int {
	next := worker
	return func() int {
		id := v.ID(next)
		if next += workers; next >= v.Count {
			next = worker
		}
		return id
	}
}
