package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Check is one thing that must work before requests may come.
type Check struct {
	Name  string // such as "postgres"
	Ready func(context.Context) error
}

// checkBudget is how long a check may take; one that hangs is not ready.
const checkBudget = 2 * time.Second

type healthBody struct {
	Status string            `json:"status"` // ok, ready or not_ready
	Checks map[string]string `json:"checks,omitempty"`
}

// Internal returns the handler for the internal listener: /healthz answers while the
// process lives, /readyz says which check fails.
func Internal(checks ...Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeHealth(w, http.StatusOK, healthBody{Status: "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checkBudget)
		defer cancel()
		status, body := http.StatusOK, healthBody{Status: "ready", Checks: map[string]string{}}
		for name, err := range run(ctx, checks) {
			body.Checks[name] = "ok"
			if err != nil {
				body.Checks[name] = err.Error()
				status, body.Status = http.StatusServiceUnavailable, "not_ready"
			}
		}
		writeHealth(w, status, body)
	})
	return mux
}

// run asks all checks at once, so that one slow server does not hide another.
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

func writeHealth(w http.ResponseWriter, status int, body healthBody) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a caller that left wants no answer
}
