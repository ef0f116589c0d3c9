// Package health answers probes: /healthz reports that the process is alive, /readyz whether it can
// serve requests.
package health

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/guard"
)

// Check is a dependency that must work before the instance gets requests.
type Check struct {
	Name     string // such as "postgres"
	Ready    func(context.Context) error
	Optional bool // its failure does not make the instance not ready
}

// Readiness runs the checks. It is safe for concurrent use.
type Readiness struct {
	guard    *guard.Guard
	checks   []Check
	draining atomic.Bool

	mu      sync.Mutex // held while the checks run; all callers share a run
	began   time.Time  // of the latest run
	results []error    // of it, in the order of the checks

	running []atomic.Bool // a check that has not ended in time is not run again meanwhile
}

type healthBody struct {
	Status string            `json:"status"` // ok, ready or not_ready
	Reason string            `json:"reason,omitempty"`
	Checks map[string]string `json:"checks,omitempty"`
}

// New returns a Readiness that requires all checks to succeed, except for optional ones. A check
// that panics has failed; the guard may be nil.
func New(g *guard.Guard, checks ...Check) *Readiness {
	return &Readiness{guard: g, checks: checks, running: make([]atomic.Bool, len(checks))}
}

// Drain makes the instance permanently not ready. Call it before the process stops.
func (r *Readiness) Drain() { r.draining.Store(true) }

// Internal returns the handler for the internal listener: /readyz runs the checks, and shows which
// one fails and why.
func (r *Readiness) Internal() http.Handler { return r.handler(0, error.Error) }

// Public returns the handler for probes of load balancers and orchestrators. It shows which check
// fails but not why, since errors name servers, and runs the checks at most once a second.
func (r *Readiness) Public() http.Handler {
	return r.handler(runEvery, func(error) string { return "failed" })
}

// handler returns a handler that shows the errors of checks as text does, of a run that began
// within keep.
func (r *Readiness) handler(keep time.Duration, text func(error) string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeHealth(w, http.StatusOK, healthBody{Status: "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if r.draining.Load() {
			writeHealth(w, http.StatusServiceUnavailable, healthBody{Status: "not_ready", Reason: "draining"})
			return
		}
		status, body := http.StatusOK, healthBody{Status: "ready", Checks: map[string]string{}}
		for i, err := range r.recent(keep) {
			check := r.checks[i]
			body.Checks[check.Name] = "ok"
			if err != nil {
				body.Checks[check.Name] = text(err)
			}
			if err != nil && !check.Optional {
				status, body.Status = http.StatusServiceUnavailable, "not_ready"
			}
		}
		writeHealth(w, status, body)
	})
	return mux
}

// recent returns the results of a run that began within keep, or of a new one. It blocks for a
// little more than checkBudget for each caller before it.
func (r *Readiness) recent(keep time.Duration) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.results, func(err error) bool { return err != nil }) {
		keep = min(keep, againAfter)
	}
	if time.Since(r.began) >= keep {
		r.began = time.Now()
		r.results = r.run()
	}
	return r.results
}

// run runs all checks concurrently, so that one slow server does not hide another. A check that
// does not even end with its context is left behind, and has failed until it ends.
func (r *Readiness) run() []error {
	ctx, cancel := context.WithTimeout(context.Background(), checkBudget)
	type result struct {
		check int
		err   error
	}
	ended := make(chan result, len(r.checks))
	results := make([]error, len(r.checks))
	waiting := 0
	for i, check := range r.checks {
		results[i] = errTooSlow
		if !r.running[i].CompareAndSwap(false, true) {
			continue
		}
		waiting++
		go func() {
			err := r.guard.Try("check "+check.Name, func() error { return check.Ready(ctx) })
			r.running[i].Store(false)
			ended <- result{i, err}
		}()
	}
	late := time.NewTimer(checkBudget + lateBy)
	defer late.Stop()
	defer cancel()
	for ; waiting > 0; waiting-- {
		select {
		case one := <-ended:
			results[one.check] = one.err
		case <-late.C:
			return results
		}
	}
	return results
}

var errTooSlow = fmt.Errorf("the check has not ended within %g s", checkBudget.Seconds())

func writeHealth(w http.ResponseWriter, status int, body healthBody) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the caller has disconnected
}
