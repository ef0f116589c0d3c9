package rentaltest

import (
	"context"
	"time"

	"motorpool/rental"
)

// Call is a call of a bank, about a charge, a payment or a refund.
type Call struct{ Method, About string }

// Fault is a fault injected into a call of a bank.
type Fault struct {
	Kind FaultKind
	Late time.Duration // with Delayed: the delay
}

// FaultKind is a kind of fault.
type FaultKind int

const (
	Well    FaultKind = iota
	Lost              // the request never arrives; no response
	Unheard           // it is executed; no response
	Delayed           // it is executed after Late; no response
	// An internal error, always returned for the key: it was not executed.
	BrokenBefore
	BrokenAfter   // the same, but it was executed
	Busy          // too many requests: nothing happened
	Misconfigured // our credentials are rejected
)

// FaultKinds lists every kind of fault.
var FaultKinds = []FaultKind{Lost, Unheard, Delayed, BrokenBefore, BrokenAfter, Busy, Misconfigured}

// silence is how long a call without a response lasts, unless its context ends first.
const silence = time.Hour

func (b *Bank) faultOf(c Call) Fault {
	b.mu.Lock()
	ask := b.fault
	b.mu.Unlock()
	if ask == nil {
		return Fault{}
	}
	return ask(c)
}

// change executes a request once per key, with the injected faults.
func (b *Bank) change(ctx context.Context, c Call, key string, do func() (rental.Intent, error)) (rental.Intent, error) {
	r, err := b.perform(ctx, c, key, func(r *reply) { r.intent, r.err = do() })
	if err != nil {
		return rental.Intent{}, err
	}
	return r.intent, r.err
}

func (b *Bank) perform(ctx context.Context, c Call, key string, do func(*reply)) (reply, error) {
	fault := b.faultOf(c)
	switch fault.Kind {
	case Lost:
		return reply{}, wait(ctx, silence)
	case Busy:
		return reply{}, failed(rental.NotDone, "too many requests")
	case Misconfigured:
		return reply{}, failed(rental.NotOurs, "no such key")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, c.Method+" "+c.About+" "+key)
	known := b.keys[key]
	switch {
	case known != nil && !known.done:
		return reply{}, failed(rental.MayHaveHappened, "a request with that key is being carried out")
	case known != nil && (fault.Kind == Unheard || fault.Kind == Delayed):
		return reply{}, b.unheard(ctx)
	case known != nil:
		return *known, nil
	}
	made := &reply{}
	b.keys[key] = made
	switch fault.Kind {
	case Unheard:
		do(made)
		made.done = true
		return reply{}, b.unheard(ctx)
	case Delayed:
		go func() { // ends when it is executed
			time.Sleep(fault.Late)
			b.mu.Lock()
			defer b.mu.Unlock()
			do(made)
			made.done = true
		}()
		return reply{}, b.unheard(ctx)
	case BrokenAfter:
		do(made)
		fallthrough
	case BrokenBefore:
		*made = reply{err: failed(rental.BrokenThere, "an error of the bank's own")}
	default:
		do(made)
	}
	made.done = true
	return *made, nil
}

// unheard unlocks the bank while the caller waits without a response. The bank must be locked.
func (b *Bank) unheard(ctx context.Context) error {
	b.mu.Unlock()
	defer b.mu.Lock()
	return wait(ctx, silence)
}

// read executes a query with the injected faults. A query changes nothing, so a lost response is
// the same as a lost request.
func (b *Bank) read(ctx context.Context, c Call, do func() error) error {
	switch b.faultOf(c).Kind {
	case Lost, Unheard, Delayed:
		return wait(ctx, silence)
	case Busy, BrokenBefore, BrokenAfter:
		return failed(rental.NotDone, "too many requests")
	case Misconfigured:
		return failed(rental.NotOurs, "no such key")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, c.Method+" "+c.About)
	return do()
}
