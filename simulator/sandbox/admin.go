package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// admin adds the routes that only this machine may use.
func (s *Server) admin(mux *http.ServeMux) {
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /{$}":               serveStart,
		"GET /sandbox/ledger":    s.serveLedger,
		"GET /sandbox/faults":    s.serveFaults,
		"POST /sandbox/faults":   s.addFaults,
		"DELETE /sandbox/faults": s.dropFaults,
	} {
		mux.HandleFunc(pattern, localOnly(h))
	}
}

func localOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			writeJSON(w, http.StatusForbidden, view{"error": "this is for the sandbox's own machine alone"})
			return
		}
		h(w, r)
	}
}

func (s *Server) serveLedger(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.Ledger())
}

// faultBody is a Fault in JSON.
type faultBody struct {
	Fault
	ForMS int64 `json:"for_ms"`
}

func (s *Server) serveFaults(w http.ResponseWriter, _ *http.Request) {
	bodies := []faultBody{}
	for _, f := range s.Faults() {
		bodies = append(bodies, faultBody{f, f.For.Milliseconds()})
	}
	writeJSON(w, http.StatusOK, bodies)
}

func (s *Server) addFaults(w http.ResponseWriter, r *http.Request) {
	var bodies []faultBody
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&bodies); err != nil {
		done(w, fmt.Errorf("read the body: %w", err))
		return
	}
	var orders []Fault
	for _, b := range bodies {
		b.For = time.Duration(b.ForMS) * time.Millisecond
		orders = append(orders, b.Fault)
	}
	done(w, s.Break(orders...))
}

func (s *Server) dropFaults(w http.ResponseWriter, _ *http.Request) {
	s.Heal()
	done(w, nil)
}

func done(w http.ResponseWriter, err error) {
	if err != nil {
		writeJSON(w, http.StatusBadRequest, view{"error": err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveStart says what there is.
func serveStart(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(
		w,
		"A payment processor's sandbox. All payments: /sandbox/ledger. The API that Motorpool uses: /v1/. More: docs/payments.md.\n",
	)
}
