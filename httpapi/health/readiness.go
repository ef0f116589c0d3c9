// Package health answers probes: /healthz reports that the process is alive, /readyz whether it can
// serve requests.
package health

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Check is a dependency that must work before the instance gets requests.
type Check struct {
	Name     string // such as "postgres"
	Ready    func(context.Context) error
	Optional bool // its failure does not make the instance not ready
}

// Readiness runs the checks. It is safe for concurrent use.
type Readiness struct {
	checks   []Check
	draining atomic.Bool

	mu     sync.Mutex // held while the checks run for the public handler
	probed time.Time
	last   probe
}

// probe is a result of all checks.
type probe struct {
	status int
	body   healthBody
}

type healthBody struct {
	Status string            `json:"status"` // ok, ready or not_ready
	Reason string            `json:"reason,omitempty"`
	Checks map[string]string `json:"checks,omitempty"`
}

// New returns a Readiness that requires all checks to succeed, except for optional ones.
func New(checks ...Check) *Readiness { return &Readiness{checks: checks} }

// Drain makes the instance permanently not ready. Call it before the process stops.
func (r *Readiness) Drain() { r.draining.Store(true) }

// Internal returns the handler for the internal listener: /readyz shows which check fails
// and why.
func (r *Readiness) Internal() http.Handler { return healthHandler(r.probe) }

// Public returns the handler for probes of load balancers and orchestrators. It shows which check
// fails but not why, since errors name servers, and runs the checks at most once a second.
func (r *Readiness) Public() http.Handler { return healthHandler(r.recent) }

func healthHandler(ready func(context.Context) probe) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeHealth(w, probe{http.StatusOK, healthBody{Status: "ok"}})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, request *http.Request) {
		writeHealth(w, ready(request.Context()))
	})
	return mux
}

func (r *Readiness) probe(ctx context.Context) probe {
	if r.draining.Load() {
		return probe{http.StatusServiceUnavailable, healthBody{Status: "not_ready", Reason: "draining"}}
	}
	ctx, cancel := context.WithTimeout(ctx, checkBudget)
	defer cancel()
	result := probe{http.StatusOK, healthBody{Status: "ready", Checks: map[string]string{}}}
	results := run(ctx, r.checks)
	for _, check := range r.checks {
		result.body.Checks[check.Name] = "ok"
		err := results[check.Name]
		if err != nil {
			result.body.Checks[check.Name] = err.Error()
		}
		if err != nil && !check.Optional {
			result.status, result.body.Status = http.StatusServiceUnavailable, "not_ready"
		}
	}
	return result
}

// recent returns a result that is not older than probeEvery, without the texts of errors.
func (r *Readiness) recent(ctx context.Context) probe {
	if r.draining.Load() {
		return r.probe(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.probed) >= probeEvery {
		// All callers share the result, so the checks continue if this caller disconnects.
		r.last = r.probe(context.WithoutCancel(ctx))
		for name, text := range r.last.body.Checks {
			if text != "ok" {
				r.last.body.Checks[name] = "failed"
			}
		}
		r.probed = time.Now()
	}
	return r.last
}

// run runs all checks concurrently, so that one slow server does not hide another.
func run(ctx context.Context, checks []Check) map[string]error {
	var mu sync.Mutex
	var asked sync.WaitGroup
	results := make(map[string]error, len(checks))
	for _, check := range checks {
		asked.Go(func() {
			err := check.Ready(ctx)
			mu.Lock()
			defer mu.Unlock()
			results[check.Name] = err
		})
	}
	asked.Wait()
	return results
}

func writeHealth(w http.ResponseWriter, p probe) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(p.body) // fails only if the caller has disconnected
}
