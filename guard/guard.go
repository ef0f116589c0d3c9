// Package guard keeps a panic from ending the process. A panic is a defect in the handling of one
// message, command or job, and must not stop the others: at the borders between them, [Guard.Do]
// counts and logs it, and what was being handled is dropped.
//
// Put a guard where one independent piece of work begins: a callback, an item of a queue, a turn of
// a loop. Do not put one inside, around a step whose other half would then be missing: what is
// half-done must end with its piece of work, whose locks and waiters are released by defer, and
// which is repeated (a lease, the sweeper, the next report) or settled as unknown.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

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
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: panic: %v", doing, v)
			log := slog.Default()
			if g != nil {
				g.panics.Inc()
				log = g.log
			}
			log.Error("panic, what was being handled is dropped", "doing", doing, "err", v, "stack", string(debug.Stack()))
		}
	}()
	run()
	return nil
}
