package broker

import (
	"context"
	"sync"

	"motorpool/telematics"
)

// drawn is what is known of the numbers that commands are given. All instances draw them from one sequence, so the next is known while nobody
// else draws.
type drawn struct {
	mu      sync.Mutex
	drawing int   // claims that are under way here
	last    int64 // the greatest that was drawn here
	steady  bool  // the latest was the one after the last: nobody else seems to draw
}

// begin returns the number that a claim will probably be given; zero: who knows.
func (d *drawn) begin() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawing++
	if d.drawing > 1 || !d.steady {
		return 0
	}
	return d.last + 1
}

// end notes the number that a claim was given; zero: none, but one may have been drawn for it.
func (d *drawn) end(number int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawing--
	d.steady = number != 0 && number == d.last+1
	d.last = max(d.last, number)
}

// signedAhead is a command as it was signed while its row was written, for the number that it would probably be given.
type signedAhead struct {
	number  int64
	done    chan struct{}
	message *telematics.Transmission // nil: it could not be signed, and is to be tried again
}

// signAhead begins to sign a command that is not claimed yet, where its number can be guessed. What is signed leaves only once the row is
// written, and if that has this number.
func (b *Broker) signAhead(ctx context.Context, c *telematics.Command, number int64) *signedAhead {
	if number == 0 {
		return nil
	}
	ahead := &signedAhead{number: number, done: make(chan struct{})}
	numbered := *c
	numbered.Seq = number
	b.background.Go(func() {
		defer close(ahead.done)
		defer func() { _ = recover() }() // it will happen again where its caller can be told
		if message, err := b.sign(ctx, &numbered); err == nil {
			ahead.message = message
		}
	})
	return ahead
}

// of returns the message of a command that was signed ahead with its number; nil: it was not. Signing waits for nobody, so neither does this for long.
func (a *signedAhead) of(c *telematics.Command) *telematics.Transmission {
	if a == nil || a.number != c.Seq {
		return nil
	}
	<-a.done
	return a.message
}
