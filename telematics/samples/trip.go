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
	for i := 1; i < len(located); i++ {
		b := located[i]
		silent := b.LocatedAt.Sub(located[i-1].LocatedAt) > silence
		away := !silent && located[last].Position.Metres(*b.Position) > stands
		fast := b.Speed != nil && b.Speed.Avg > telematics.MovingKmh
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

func newTrip(track []Bucket) Trip {
	t := Trip{Track: track}
	for i := 1; i < len(track); i++ {
		t.Metres += track[i-1].Position.Metres(*track[i].Position)
	}
	return t
}
