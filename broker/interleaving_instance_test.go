package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/broker"
)

// instance is one process of the service.
type instance struct {
	*interleaving
	name    string
	broker  *broker.Broker
	link    *link
	open    bool // accepts orders; guarded by the interleaving's mutex
	listens atomic.Bool
	early   bool // stopped before the faults ended
	sends   sync.WaitGroup
	end     context.CancelFunc
	running sync.WaitGroup
}

// launch starts one more instance.
func (w *interleaving) launch() {
	w.mu.Lock()
	n := len(w.instances) + 1
	w.mu.Unlock()
	i := &instance{interleaving: w, name: fmt.Sprintf("instance %d", n), open: true}
	i.link = &link{interleaving: w, dice: newDice(w.seed, uint64(200+n)), of: i}
	i.broker = broker.New(broker.Config{
		Vehicles: i.link, Commands: i.link, Halts: i.link, Clock: i.link, AuditLog: i.link, Pending: i.link,
		Twins: i.link, Contacts: i.link, Events: i.link,
		Publisher: &radio{interleaving: w, from: i, dice: newDice(w.seed, uint64(300+n))}, Key: w.key, Dialects: spoken,
		Instance: i.name, QueueSize: 256, Workers: 4, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(i.Context())
	i.end = cancel
	i.running.Go(func() {
		if err := i.broker.Run(ctx); err != nil {
			w.violated("Run ends well", "%v", err)
		}
	})
	i.listens.Store(true)
	w.note("%s starts", i.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances = append(w.instances, i)
	if !w.downSince.IsZero() {
		w.troubles = append(w.troubles, interval{w.downSince, time.Now()})
		w.downSince = time.Time{}
	}
}

// close stops accepting orders, and reports whether the instance did accept them.
func (i *instance) close() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.open {
		return false
	}
	i.open, i.early = false, !i.mended.Load()
	return true
}

// stop ends an instance in order, as on SIGTERM.
func (i *instance) stop() {
	if !i.close() {
		return
	}
	i.note("%s stops", i.name)
	i.ends.Go(func() {
		i.sends.Wait()
		if err := i.broker.Drain(context.Background()); err != nil {
			i.violated("Drain ends well", "%v", err)
		}
		i.listens.Store(false)
		i.end()
		i.running.Wait()
		i.gone()
		for _, id := range i.ledger.openOf(i.name) {
			if !i.isExcused(id) {
				i.violated("an orderly stop leaves nothing open", "%v, of %s", id, i.name)
			}
		}
	})
}

// crash ends an instance as SIGKILL does. Its goroutines keep running, without connections, until
// they have nothing to wait for.
func (i *instance) crash() {
	if !i.close() {
		return
	}
	i.note("%s crashes", i.name)
	i.link.dead.Store(true)
	i.listens.Store(false)
	i.gone()
	i.ends.Go(func() {
		i.sends.Wait()
		_ = i.broker.Drain(context.Background())
		i.end()
		i.running.Wait()
	})
}

// gone records the time from which no instance is up.
func (i *instance) gone() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, other := range i.instances {
		if other.open {
			return
		}
	}
	if i.downSince.IsZero() {
		i.downSince = time.Now()
	}
}

func (i *instance) up() bool { return i.open }

// anyInstance returns a random instance for which a condition holds, or nil.
func (w *interleaving) anyInstance(is func(*instance) bool) *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pick(is)
}

// engage returns a random instance that accepts orders, and delays its end by one order; nil: none.
func (w *interleaving) engage() *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.pick((*instance).up)
	if i != nil {
		i.sends.Add(1)
	}
	return i
}

// pick draws an instance for which a condition holds, or nil. w.mu is held.
func (w *interleaving) pick(is func(*instance) bool) *instance {
	var fit []*instance
	for _, i := range w.instances {
		if is(i) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[w.dice.below(len(fit))]
}

func (w *interleaving) everyInstance(do func(*instance)) {
	w.mu.Lock()
	all := append([]*instance(nil), w.instances...)
	w.mu.Unlock()
	for _, i := range all {
		do(i)
	}
}
