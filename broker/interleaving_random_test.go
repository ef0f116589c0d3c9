package broker_test

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice are what one part of an interleaving is drawn from. Each part has its own, so that
// what happens in one draws nothing from another.
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

// within returns a time from least to most, to the microsecond, so that few things happen
// at one instant.
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

// temper is how unkind an interleaving is: the chances of what may go wrong at any moment.
type temper struct {
	stores   float64 // a call of a store fails, in one of its ways
	slow     float64 // a call of a store takes long
	lost     float64 // a message on the air, either way
	repeated float64 // a message on the air, either way
	held     float64 // a message on the air comes long after
	refused  float64 // a message by the MQTT client
	deaf     float64 // a wake-up is lost, unnoticed
	damaged  float64 // a command on the air, so that its car cannot verify it
	leaks    float64 // a command is refused by an MQTT client that sent it all the same: a anomaly
}

func newTemper(d *dice) temper {
	return temper{
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
