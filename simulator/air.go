package simulator

import (
	"bytes"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	maxHold = time.Second // how long a reordered answer is held back
	// How long after a damaged copy the sound one comes.
	minApart  = 300 * time.Millisecond
	maxApart  = 3 * time.Second
	airMemory = 64 // deliveries by which a retransmission is recognised
)

// air is what lies between a unit and its broker: it decides when, how often and whether a message
// arrives. Messages of one direction stay in order, as on any TCP connection, but for the faults.
type air struct {
	latency Latency
	faults  *Faults
	rng     *rand.Rand
	trip    time.Duration // there and back, in the conditions of the latest command
	heard   time.Time     // no command arrives before an earlier one
	said    time.Time     // nor does an answer leave
	hash    maphash.Seed
	known   []uint64 // the latest deliveries
}

func newAir(latency Latency, faults *Faults, rng *rand.Rand) *air {
	return &air{latency: latency, faults: faults, rng: rng, trip: latency(rng), hash: maphash.MakeSeed()}
}

// down returns when a message from the broker reaches the unit, or false where it never does.
func (a *air) down(now time.Time, message []byte) (time.Time, bool) {
	if a.drops(message) {
		return time.Time{}, false
	}
	a.trip = a.latency(a.rng) + a.faults.Delay
	a.heard = later(a.heard, now.Add(a.trip/2))
	return a.heard, true
}

// apart returns how long after a damaged copy a message comes, or false where there is none.
func (a *air) apart() (time.Duration, bool) {
	if !a.faults.Damage.strikes(a.rng) {
		return 0, false
	}
	return uniform(a.rng, minApart, maxApart), true
}

// damaged returns a copy of a signed message that no key verifies, though it still says which
// command it is; false: it is none.
func damaged(message []byte) ([]byte, bool) {
	at := bytes.LastIndexByte(message, '.') + 1
	if at == 0 || at == len(message) {
		return nil, false
	}
	spoilt := bytes.Clone(message)
	spoilt[at] = 'A'
	if message[at] == 'A' {
		spoilt[at] = 'B'
	}
	return spoilt, true
}

// settle draws the conditions anew, as the faults have changed: what is on its way stays as late as
// it is, but a report of a healed radio is not.
func (a *air) settle() { a.trip = a.latency(a.rng) + a.faults.Delay }

func (a *air) drops(message []byte) bool {
	print := maphash.Bytes(a.hash, message)
	first := !slices.Contains(a.known, print)
	if first {
		a.known = append(a.known, print)
		a.known = a.known[max(0, len(a.known)-airMemory):]
	}
	return first && a.faults.Drop.turn() || a.faults.Drop.draw(a.rng)
}

// up returns when a report leaves.
func (a *air) up(now time.Time) time.Time {
	a.said = later(a.said, now.Add(a.trip/2))
	return a.said
}

// upAnswer returns when the copies of an answer leave: none, one or two.
func (a *air) upAnswer(now time.Time) []time.Time {
	if a.faults.DropAnswer.strikes(a.rng) {
		return nil
	}
	copies := 1
	if a.faults.Duplicate.strikes(a.rng) {
		copies = 2
	}
	leave := make([]time.Time, copies)
	for i := range leave {
		if a.faults.Reorder.strikes(a.rng) {
			leave[i] = now.Add(a.trip/2 + uniform(a.rng, 0, maxHold))
		} else {
			leave[i] = a.up(now)
		}
		leave[i] = leave[i].Add(a.faults.Late)
	}
	return leave
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Latency draws how long the radio takes for one command and its answer together.
type Latency func(*rand.Rand) time.Duration

// Fast is a bench next to the broker.
func Fast(rng *rand.Rand) time.Duration { return uniform(rng, 2*time.Millisecond, 8*time.Millisecond) }

// The cellular model: half of all answers within the median, nine of ten between 2 and 10 seconds.
const (
	cellularMedian = 4200 * time.Millisecond
	cellularSigma  = 0.45
)

// Cellular is a mobile network on an ordinary day.
func Cellular(rng *rand.Rand) time.Duration {
	return time.Duration(float64(cellularMedian) * math.Exp(cellularSigma*rng.NormFloat64()))
}

// Between returns a radio that takes from low to high.
func Between(low, high time.Duration) Latency {
	return func(rng *rand.Rand) time.Duration { return uniform(rng, low, high) }
}

func uniform(rng *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(rng.Int64N(int64(high-low)))
}
