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
	// How long after a damaged copy the undamaged one arrives.
	minApart  = 300 * time.Millisecond
	maxApart  = 3 * time.Second
	airMemory = 64 // deliveries by which a retransmission is recognised
)

// air models the network between a unit and its broker: it decides whether, when and how often a
// message arrives. Messages of one direction stay in order, as on any TCP connection, but for the
// faults.
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

// down returns when a message from the broker reaches the unit; false: it never does.
func (a *air) down(now time.Time, message []byte) (time.Time, bool) {
	if a.drops(message) {
		return time.Time{}, false
	}
	a.trip = a.latency(a.rng) + a.faults.Delay
	a.heard = later(a.heard, now.Add(a.trip/2))
	return a.heard, true
}

// apart returns how long after a damaged copy a message arrives; false: there is no such copy.
func (a *air) apart() (time.Duration, bool) {
	if !a.faults.Damage.strikes(a.rng) {
		return 0, false
	}
	return uniform(a.rng, minApart, maxApart), true
}

// damaged returns a copy of a signed message with the same claims and a signature that no key
// verifies; false: the message is not signed.
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

// settle draws the conditions anew after the faults have changed. Messages in transit keep their
// delay; later reports have the new one.
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

// Fast is the latency of a unit next to its broker, 2 to 8 ms.
func Fast(rng *rand.Rand) time.Duration { return uniform(rng, 2*time.Millisecond, 8*time.Millisecond) }

// The cellular model: half of all answers within the median, nine of ten between 2 and 10 seconds.
const (
	cellularMedian = 4200 * time.Millisecond
	cellularSigma  = 0.45
)

// Cellular is the latency of an ordinary mobile network.
func Cellular(rng *rand.Rand) time.Duration {
	return time.Duration(float64(cellularMedian) * math.Exp(cellularSigma*rng.NormFloat64()))
}

// Between returns latencies that are uniform from low to high.
func Between(low, high time.Duration) Latency {
	return func(rng *rand.Rand) time.Duration { return uniform(rng, low, high) }
}

func uniform(rng *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(rng.Int64N(int64(high-low)))
}
