package samples

import (
	"slices"
	"time"

	"motorpool/telematics"
)

const (
	// stands is how far positions of a vehicle that stands differ, in metres: between houses the
	// error of a receiver. Half: trips of cars that stand; double: a trip begins a block later.
	stands = 50
	// stop is how long a vehicle stands between two trips: longer than at a traffic light or a
	// level crossing. Half: a jam divides a trip; double: an errand does not.
	stop = 5 * time.Minute
	// silence is the time without a position in which it is not known what a vehicle did: a unit
	// that is online reports once in it at least. Half: a tunnel divides a trip; double: a trip
	// that begins in a garage begins before it.
	silence = 10 * time.Minute
	// shortest is the length of the shortest trip, in metres: less is a car that is parked
	// elsewhere.
	shortest = 2 * stands
)

// Trip is a drive of a vehicle.
type Trip struct {
	Track  []Bucket // with positions, at least two
	Metres float64  // along the track, whose corners are cut
}

// Trips returns the trips in the buckets of a vehicle, the oldest first. A bucket must be as short
// as Driving. A trip that had begun before the first bucket, or goes on after the last one, is as
// much of it as there is.
func Trips(buckets []Bucket) (trips []Trip) {
	located := slices.DeleteFunc(slices.Clone(buckets), func(b Bucket) bool { return b.Position == nil })
	first, last := -1, 0 // of the trip, -1: none; and where the vehicle was when it last moved
	end := func() {
		if first >= 0 {
			if t := newTrip(located[first : last+1]); t.Metres >= shortest {
				trips = append(trips, t)
			}
		}
		first = -1
	}
	for i, b := range located {
		before := located[max(i-1, 0)]
		silent := b.LocatedAt.Sub(before.LocatedAt) > silence
		fast := b.Speed != nil && b.Speed.Avg > telematics.MovingKmh
		moves := !silent && (!isParked(before) || !isParked(b))
		away := moves && located[last].Position.Metres(*b.Position) > stands
		if silent || !away && b.LocatedAt.Sub(located[last].LocatedAt) > stop {
			end()
		}
		switch {
		case first >= 0:
		case away:
			first = i - 1
		case fast:
			first = i
		}
		if away || fast || silent {
			last = i
		}
	}
	end()
	return trips
}

// isParked reports whether a vehicle is said not to move, wherever its receiver believes to be: it
// errs by hundreds of metres in a garage.
func isParked(b Bucket) bool {
	return b.Ignition != nil && !*b.Ignition && b.Speed != nil && b.Speed.Max <= telematics.MovingKmh
}

func newTrip(track []Bucket) Trip {
	t := Trip{Track: track}
	for i := 1; i < len(track); i++ {
		t.Metres += track[i-1].Position.Metres(*track[i].Position)
	}
	return t
}
