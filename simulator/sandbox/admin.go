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
		"GET /{$}":                 serveStart,
		"GET /sandbox/ledger":      s.serveLedger,
		"GET /sandbox/faults":      s.serveFaults,
		"POST /sandbox/faults":     s.addFaults,
		"DELETE /sandbox/faults":   s.dropFaults,
		"POST /sandbox/cards/{id}": s.changeCard,
		"POST /sandbox/webhook":    s.changeWebhook,
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
	Kind    FaultKind `json:"kind"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Times   int       `json:"times"`
	Percent int       `json:"percent"`
	ForMS   int64     `json:"for_ms"`
}

func (s *Server) serveFaults(w http.ResponseWriter, _ *http.Request) {
	bodies := []faultBody{}
	for _, f := range s.Faults() {
		bodies = append(bodies, faultBody{Kind: f.Kind, Method: f.Method, Path: f.Path, Times: f.Times, Percent: f.Percent, ForMS: f.For.Milliseconds()})
	}
	writeJSON(w, http.StatusOK, bodies)
}

func (s *Server) addFaults(w http.ResponseWriter, r *http.Request) {
	var bodies []faultBody
	if !read(w, r, &bodies) {
		return
	}
	var orders []Fault
	for _, b := range bodies {
		orders = append(orders, Fault{Kind: b.Kind, Method: b.Method, Path: b.Path, Times: b.Times, Percent: b.Percent, For: time.Duration(b.ForMS) * time.Millisecond})
	}
	done(w, s.Break(orders...))
}

func (s *Server) dropFaults(w http.ResponseWriter, _ *http.Request) {
	s.Heal()
	done(w, nil)
}

func (s *Server) changeCard(w http.ResponseWriter, r *http.Request) {
	var b Behaviour
	if read(w, r, &b) {
		done(w, s.SetCard(r.PathValue("id"), b))
	}
}

func (s *Server) changeWebhook(w http.ResponseWriter, r *http.Request) {
	var b struct {
		URL string `json:"url"`
	}
	if read(w, r, &b) {
		s.SetWebhook(b.URL)
		done(w, nil)
	}
}

// read decodes a body, or answers what is wrong with it.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err != nil {
		done(w, fmt.Errorf("read the body: %w", err))
	}
	return err == nil
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
	_, _ = io.WriteString(w, "A payment processor's sandbox. All payments: /sandbox/ledger. The API that Motorpool uses: /v1/. More: docs/payments.md.\n")
}
