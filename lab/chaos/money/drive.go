package money

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"motorpool/lab/world"
)

const (
	// Between two operations of a booking, at most; less in a short round.
	operationGap = 1200 * time.Millisecond
	// Between attempts of a patient operation; less in a short round.
	patientPause = 500 * time.Millisecond
	patientTries = 12
	// Percent of the load, after which clients with a declined card choose another one.
	changeCardsFrom = 50
	maxConcurrent   = 256
)

// runBookings performs the operations of all bookings. It returns when every call has an answer.
func (r *round) runBookings(ctx context.Context) {
	r.operations = make([][]*Operation, len(r.bookings))
	turns := make(chan struct{}, maxConcurrent)
	var work sync.WaitGroup
	begin := time.Now()
	work.Go(func() { r.changeCards(ctx) })
	for i, b := range r.bookings {
		r.operations[i] = b.drawOperations(r.Seed)
		if r.LostCommits { // what can be repeated, of clients whose card pays
			r.operations[i] = slices.DeleteFunc(r.operations[i], func(d *Operation) bool {
				return b.client.nextCard != 0 || d.Wrong || d.MayFail || d.Kind != Start && d.Kind != Fee && d.Kind != End
			})
		}
		world.Pause(ctx, time.Until(begin.Add(r.Duration*time.Duration(i)/time.Duration(len(r.bookings)))))
		turns <- struct{}{}
		work.Go(func() {
			defer func() { <-turns }()
			r.runBooking(ctx, b, r.operations[i])
		})
	}
	work.Wait()
}

// allOperations returns the operations of all bookings.
func (r *round) allOperations() (all []Operation) {
	for _, operations := range r.operations {
		for _, o := range operations {
			all = append(all, *o)
		}
	}
	return all
}

// runBooking performs the operations of one booking, one after another.
func (r *round) runBooking(ctx context.Context, b booking, operations []*Operation) {
	rng := rand.New(rand.NewPCG(r.Seed, 1<<32+uint64(b.id)))
	for _, d := range operations {
		world.Pause(ctx, time.Duration(rng.Int64N(int64(min(operationGap, r.Duration/16)))))
		r.perform(ctx, rng, b, d)
	}
}

// perform calls until the answer is definite.
func (r *round) perform(ctx context.Context, rng *rand.Rand, b booking, d *Operation) {
	c := b.call(d)
	var twin sync.WaitGroup
	if d.twice {
		// With the same key: the other call gets the same result in the end.
		at := r.anyInstance(rng)
		twin.Go(func() {
			if !r.callOnce(ctx, c, at, callTimeout).definite() {
				d.Open = time.Now()
			}
		})
	}
	for n := range patientTries {
		s, tries, open := r.callUntilDefinite(ctx, rng, c)
		twin.Wait()
		d.Status, d.Code, d.Tries = s.status, s.code, d.Tries+tries
		if open.After(d.Open) {
			d.Open = open
		}
		if !d.patient || !slices.Contains(refusals[d.Kind], d.Code) || n == patientTries-1 {
			break
		}
		world.Pause(ctx, min(patientPause, r.Duration/40))
	}
	if d.Done() && d.repeats {
		s, tries, _ := r.callUntilDefinite(ctx, rng, c)
		d.Repeated, d.Tries = s.status, d.Tries+tries
	}
}

func (b booking) call(d *Operation) call {
	c := call{key: d.Key}
	c.path, c.body = d.request(b.terms.Currency)
	if d.Kind == Extend {
		c.client = b.client
	}
	return c
}

// inFlightFor is how long the service may still process a request whose caller has gone.
const inFlightFor = 6 * time.Second

// retryUnanswered repeats, after all faults, operations that were refused after attempts without an
// answer. A refusal frees the key, so an instance that was frozen, or waited for a lock, could
// still perform such an attempt: a refusal is final only when no attempt is in flight any more.
func (r *round) retryUnanswered(ctx context.Context) {
	r.healed.Store(true)
	for i, b := range r.bookings {
		for _, d := range r.operations[i] {
			if d.Done() || d.Open.IsZero() {
				continue
			}
			world.Pause(ctx, time.Until(d.Open.Add(inFlightFor)))
			world.Pause(ctx, time.Until(r.resumed.Add(inFlightFor)))
			rng := rand.New(rand.NewPCG(r.Seed, 1<<35+uint64(b.id)))
			s, tries, _ := r.callUntilDefinite(ctx, rng, b.call(d))
			d.Status, d.Code, d.Tries = s.status, s.code, d.Tries+tries
		}
	}
}

// changeCards makes clients whose first card is always declined, and some others, choose another
// default.
func (r *round) changeCards(ctx context.Context) {
	from := r.Duration * changeCardsFrom / 100
	world.Pause(ctx, from)
	var work sync.WaitGroup
	for i, c := range r.clients {
		if c.nextCard == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(r.Seed, 1<<33+uint64(i)))
		work.Go(func() {
			world.Pause(ctx, time.Duration(rng.Int64N(int64((r.Duration-from)/2))))
			path := fmt.Sprintf("/api/v1/client/payment-methods/%d/default", c.nextCard)
			s, _, _ := r.callUntilDefinite(ctx, rng, call{path: path, key: fmt.Sprintf("change-%d", i), client: c})
			if s.status/100 != 2 && ctx.Err() == nil {
				r.Fail(fmt.Errorf("client %d could not choose another card: %d %s", i, s.status, s.code))
			}
		})
	}
	work.Wait()
}
