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
	betweenDeeds   = 1200 * time.Millisecond // at most, of one booking; less in a short round
	patienceRetry  = 500 * time.Millisecond  // likewise
	patienceTries  = 12
	rescueFrom     = 50 // percent of the load after which clients whose card is declined change to another one, at the earliest
	bookingsAtOnce = 256
)

// drive leads all bookings through their lives. It returns when every call has its answer.
func (w *world) drive(ctx context.Context) {
	w.tours = make([][]*Deed, len(w.bookings))
	turns := make(chan struct{}, bookingsAtOnce)
	var work sync.WaitGroup
	begin := time.Now()
	work.Go(func() { w.rescue(ctx) })
	for i, b := range w.bookings {
		w.tours[i] = b.tour(w.Seed)
		pause(ctx, time.Until(begin.Add(w.Duration*time.Duration(i)/time.Duration(len(w.bookings)))))
		turns <- struct{}{}
		work.Go(func() {
			defer func() { <-turns }()
			w.lead(ctx, b, w.tours[i])
		})
	}
	work.Wait()
}

// deeds is what was asked for.
func (w *world) deeds() (deeds []Deed) {
	for _, tour := range w.tours {
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
		pause(ctx, time.Duration(rng.Int64N(int64(min(betweenDeeds, w.Duration/16)))))
		w.do(ctx, rng, b, d)
	}
}

func (w *world) do(ctx context.Context, rng *rand.Rand, b booking, d *Deed) {
	c := b.call(d)
	var twin sync.WaitGroup
	if d.twice {
		// With the same key, and so for nothing, whatever it is answered: the other call knows in the end.
		at := w.instances[rng.IntN(len(w.instances))]
		twin.Go(func() {
			if !w.ask(ctx, c, at, callTimeout).definite() {
				d.Open = time.Now()
			}
		})
	}
	for n := range patienceTries {
		s, tries, open := w.insist(ctx, rng, c)
		twin.Wait()
		d.Status, d.Code, d.Tries = s.status, s.code, d.Tries+tries
		if open.After(d.Open) {
			d.Open = open
		}
		if !d.patient || !slices.Contains(refusals[d.Kind], d.Code) || n == patienceTries-1 {
			break
		}
		pause(ctx, min(patienceRetry, w.Duration/40))
	}
	if d.Done() && d.repeats {
		s, tries, _ := w.insist(ctx, rng, c)
		d.Repeated, d.Tries = s.status, d.Tries+tries
	}
}

func (b booking) call(d *Deed) call {
	c := call{key: d.Key}
	c.path, c.body = d.request(b.terms.Currency)
	if d.Kind == Extend {
		c.client = b.client
	}
	return c
}

// onItsWay is for how long the service may still carry out what nobody waits for any more.
const onItsWay = 6 * time.Second

// askAgain has those ask once more, now that all is healed, who were refused after attempts without an answer. A refusal frees
// the key, so such an attempt could be carried out after it, by an instance that was frozen or waited for a lock: what was
// refused is only known to be refused once nothing is on its way any more.
func (w *world) askAgain(ctx context.Context) {
	w.healed.Store(true)
	for i, b := range w.bookings {
		for _, d := range w.tours[i] {
			if d.Done() || d.Open.IsZero() {
				continue
			}
			pause(ctx, time.Until(d.Open.Add(onItsWay)))
			pause(ctx, time.Until(w.thawed.Add(onItsWay)))
			rng := rand.New(rand.NewPCG(w.Seed, 1<<35+uint64(b.id)))
			s, tries, _ := w.insist(ctx, rng, b.call(d))
			d.Status, d.Code, d.Tries = s.status, s.code, d.Tries+tries
		}
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
			if s, _, _ := w.insist(ctx, rng, call{path: path, key: fmt.Sprintf("rescue-%d", i), client: c}); s.status/100 != 2 && ctx.Err() == nil {
				w.fall(fmt.Errorf("client %d could not choose another card: %d %s", i, s.status, s.code))
			}
		})
	}
	work.Wait()
}
