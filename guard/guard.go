// Package guard keeps a panic from ending the process. A panic is a defect in the handling of one
// message, command or job, and must not stop the others. A Guard stands at the borders between
// them, where it counts and logs the panic. There are three kinds:
//
//   - [Guard.Do] is for one independent piece of work without a result: a callback, an item of a
//     queue, a turn of a loop. It is dropped.
//   - [Guard.Try] is for work whose result is awaited, mostly from another goroutine: the panic
//     is the error. It also serves a part that cannot go on, such as a listener, whose error ends
//     the instance.
//   - [Guard.Keep] is for loops and parts of the service, which must not end before their context:
//     it runs them again after a pause. Whatever they have started ends with them, by defer, and
//     what they must not do twice is kept outside.
//
// Each goroutine of the service begins with one of them; a test at the root of the repository lists
// the exceptions. Do not put a guard inside, around a step whose other half would then be missing:
// what is half-done must end with its piece of work, whose locks and waiters are released by defer,
// and which is repeated (a lease, the sweeper, the next report) or settled as unknown.
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pauseAfter is the pause before a loop that has panicked runs again; a choice. Half: a loop that
// panics each time fills the log twice as fast. Double: halts are not read for 2 s of the 3 after
// which no command is sent (broker.HaltWithin).
const pauseAfter = time.Second

// Guard recovers panics. It is safe for concurrent use. A nil Guard logs to slog.Default.
type Guard struct {
	log    *slog.Logger
	panics prometheus.Counter
}

// New returns a guard that logs, and counts in the registerer; nil: it only logs.
func New(log *slog.Logger, registerer prometheus.Registerer) *Guard {
	g := &Guard{log: log, panics: newPanics()}
	if registerer != nil {
		registerer.MustRegister(g.panics)
	}
	return g
}

// Do calls run, and returns an error where it panicked. The panic is logged with what was being
// done, and with the stack.
func (g *Guard) Do(doing string, run func()) (err error) {
	defer g.recovered(doing, &err)
	run()
	return nil
}

// Try is Do for a function with an error: it returns that of run, or of its panic.
func (g *Guard) Try(doing string, run func() error) (err error) {
	defer g.recovered(doing, &err)
	return run()
}

// Keep calls run until it returns without a panic, its own or one that Try has returned to it, and
// returns its error. After a panic, it calls run again after a pause, unless the context has ended:
// then it returns nil.
func (g *Guard) Keep(ctx context.Context, doing string, run func(context.Context) error) error {
	for {
		err := g.Try(doing, func() error { return run(ctx) })
		if !errors.As(err, new(panicError)) {
			return err
		}
		if !Pause(ctx, pauseAfter) {
			return nil
		}
	}
}

// Pause waits, and reports false where the context ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// panicError is the error of what has panicked.
type panicError struct {
	doing string
	value any
}

func (e panicError) Error() string { return fmt.Sprintf("%s: panic: %v", e.doing, e.value) }

// recovered is deferred around what may panic.
func (g *Guard) recovered(doing string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = panicError{doing, v}
	log := slog.Default()
	if g != nil {
		g.panics.Inc()
		log = g.log
	}
	log.Error("panic, what was being handled is dropped", "doing", doing, "err", v, "stack", string(debug.Stack()))
}
