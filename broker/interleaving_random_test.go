package broker_test

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice is the random source of one part of an interleaving. Each part has its own, so that the
// events of one part do not change the draws of another.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed, part uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, part))} }

func (d *dice) chance(p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64() < p
}

// within returns a random duration from least to most, in microseconds, so that few events
// coincide.
func (d *dice) within(least, most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return least + time.Duration(d.r.Float64()*float64((most-least)/time.Microsecond))*time.Microsecond
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// oneOf returns one of the choices.
func oneOf[T any](d *dice, choices ...T) T { return choices[d.below(len(choices))] }

// faultRates are the probabilities of faults, drawn for each interleaving.
type faultRates struct {
	stores   float64 // a call of a store fails
	slow     float64 // a call of a store is slow
	lost     float64 // a message is lost, in either direction
	repeated float64 // a message is repeated, in either direction
	held     float64 // a message arrives much later
	refused  float64 // a message is refused by the MQTT client
	deaf     float64 // a wake-up is lost without an error
	damaged  float64 // a command is damaged, so that its car cannot verify it
	leaks    float64 // a command is refused by the MQTT client and still sent, which is an anomaly
}

func newFaultRates(d *dice) faultRates {
	return faultRates{
		stores:   oneOf(d, 0, 0, 0.01, 0.05),
		slow:     oneOf(d, 0, 0.02, 0.1),
		lost:     oneOf(d, 0, 0.1, 0.3, 0.6),
		repeated: oneOf(d, 0, 0.1, 0.3),
		held:     oneOf(d, 0, 0.05, 0.2),
		refused:  oneOf(d, 0, 0.1, 0.5),
		deaf:     oneOf(d, 0, 0.2, 1),
		damaged:  oneOf(d, 0, 0, 0.1, 0.4),
		leaks:    oneOf(d, 0, 0, 0, 0, 0, 0.3),
	}
}
