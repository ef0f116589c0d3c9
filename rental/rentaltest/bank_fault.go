package rentaltest

import (
	"context"
	"time"

	"motorpool/rental"
)

// Call is a call of a bank, about a charge, a payment or a refund.
type Call struct{ Method, About string }

// Fault is what goes wrong with a call of a bank.
type Fault struct {
	Kind FaultKind
	Late time.Duration // after how long it happens after all
}

// FaultKind is a way in which a call goes wrong.
type FaultKind int

const (
	Well    FaultKind = iota
	Lost              // the request never arrives; the caller hears nothing
	Unheard           // it is carried out; the caller hears nothing
	Delayed           // it is carried out after Late; the caller hears nothing
	// An error of the bank's own, which the key answers for ever: it was not carried out.
	BrokenBefore
	BrokenAfter   // the same, but it was carried out
	Busy          // too many requests: nothing happened
	Misconfigured // our credentials are refused
)

// FaultKinds lists every way in which a call goes wrong.
var FaultKinds = []FaultKind{Lost, Unheard, Delayed, BrokenBefore, BrokenAfter, Busy, Misconfigured}

// silence is how long a caller waits for an answer that does not come, unless its own time is over
// before.
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

// change carries out what a key stands for, once, with the faults that were asked for.
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
		go func() { // ends when it is carried out
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

// unheard lets the caller wait in vain, while the bank goes on.
func (b *Bank) unheard(ctx context.Context) error {
	b.mu.Unlock()
	defer b.mu.Lock()
	return wait(ctx, silence)
}

// read looks something up, with the faults that were asked for: a look changes nothing, so those
// that would are silence.
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
