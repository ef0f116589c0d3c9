package money

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	betweenDeeds   = 1200 * time.Millisecond // at most, of one booking
	patienceRetry  = 500 * time.Millisecond
	patienceTries  = 12
	rescueFrom     = 50 // percent of the load after which clients whose card is declined change to another one, at the earliest
	bookingsAtOnce = 256
)

// drive leads all bookings through their lives, and returns what was asked for. It returns when every call has its answer.
func (w *world) drive(ctx context.Context) []Deed {
	tours := make([][]*Deed, len(w.bookings))
	turns := make(chan struct{}, bookingsAtOnce)
	var work sync.WaitGroup
	begin := time.Now()
	work.Go(func() { w.rescue(ctx) })
	for i, b := range w.bookings {
		tours[i] = b.tour(w.Seed)
		pause(ctx, time.Until(begin.Add(w.Duration*time.Duration(i)/time.Duration(len(w.bookings)))))
		turns <- struct{}{}
		work.Go(func() {
			defer func() { <-turns }()
			w.lead(ctx, b, tours[i])
		})
	}
	work.Wait()
	var deeds []Deed
	for _, tour := range tours {
		for _, d := range tour {
			deeds = append(deeds, *d)
		}
	}
	return deeds
}

// lead asks for the deeds of one booking, one after another.
func (w *world) lead(ctx context.Context, b booking, tour []*Deed) {
	rng := rand.New(rand.NewPCG(w.Seed, 1<<32+uint64(b.id)))
	for _, d := range tour {
		pause(ctx, time.Duration(rng.Int64N(int64(min(betweenDeeds, w.Duration/8)))))
		w.do(ctx, rng, b, d)
	}
}

func (w *world) do(ctx context.Context, rng *rand.Rand, b booking, d *Deed) {
	c := call{key: d.Key}
	c.path, c.body = d.request(b.terms.Currency)
	if d.Kind == Extend {
		c.client = b.client
	}
	var twin sync.WaitGroup
	if d.twice {
		// With the same key, and so for nothing, whatever it is answered: the other call knows in the end.
		at := w.instances[rng.IntN(len(w.instances))]
		twin.Go(func() { w.ask(ctx, c, at, callTimeout) })
	}
	for n := range patienceTries {
		s, tries := w.insist(ctx, rng, c)
		d.Status, d.Code, d.Tries = s.status, s.code, d.Tries+tries
		twin.Wait()
		if !d.patient || !slices.Contains(refusals[d.Kind], d.Code) || n == patienceTries-1 {
			break
		}
		pause(ctx, min(patienceRetry, w.Duration/20))
	}
	if d.Done() && d.repeats {
		s, tries := w.insist(ctx, rng, c)
		d.Repeated, d.Tries = s.status, d.Tries+tries
	}
}

// rescue has the clients whose first card is always declined, and some others, choose another default.
func (w *world) rescue(ctx context.Context) {
	from := w.Duration * rescueFrom / 100
	pause(ctx, from)
	var work sync.WaitGroup
	for i, c := range w.clients {
		if c.rescue == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(w.Seed, 1<<33+uint64(i)))
		work.Go(func() {
			pause(ctx, time.Duration(rng.Int64N(int64((w.Duration-from)/2))))
			path := fmt.Sprintf("/api/v1/client/payment-methods/%d/default", c.rescue)
			if s, _ := w.insist(ctx, rng, call{path: path, key: fmt.Sprintf("rescue-%d", i), client: c}); s.status/100 != 2 && ctx.Err() == nil {
				w.fall(fmt.Errorf("client %d could not choose another card: %d %s", i, s.status, s.code))
			}
		})
	}
	work.Wait()
}
