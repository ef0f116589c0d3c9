package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// request is one call of the API.
type request struct {
	id          string // of the object that the path names; empty: none
	params      *params
	publishable bool     // a publishable key came with it
	later       []string // refunds that it leaves to be settled
}

// operation reads or changes the ledger, which is locked meanwhile.
type operation func(*ledger, *request) (view, *failure)

// forAll says that a publishable key will do.
const (
	forAll    = true
	forSecret = false
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, op := range map[string]operation{
		"POST /v1/customers":                    createCustomer,
		"GET /v1/payment_methods/{id}":          getMethod,
		"POST /v1/payment_methods/{id}/attach":  attach,
		"POST /v1/payment_methods/{id}/detach":  detach,
		"POST /v1/payment_intents":              createIntent,
		"GET /v1/payment_intents":               listIntents,
		"POST /v1/payment_intents/{id}/capture": capture,
		"POST /v1/payment_intents/{id}/cancel":  cancel,
		"POST /v1/refunds":                      createRefund,
		"GET /v1/refunds":                       listRefunds,
		"GET /v1/refunds/{id}":                  getRefund,
	} {
		mux.HandleFunc(pattern, s.api(forSecret, op))
	}
	mux.HandleFunc("GET /v1/payment_intents/{id}", s.api(forAll, getIntent))
	mux.HandleFunc("POST /v1/payment_intents/{id}/confirm", s.api(forAll, confirm))
	mux.HandleFunc("/v1/", s.api(forAll, nowhere))
	s.admin(mux)
	return mux
}

func nowhere(*ledger, *request) (view, *failure) {
	f := refused("", "", "No such endpoint, or this sandbox does not have it.")
	f.Status, f.fleeting = http.StatusNotFound, true
	return nil, f
}

const maxBody = 1 << 20

// api returns the handler of an operation: key, parameters, orders to break, idempotency, the
// object's lock, and then the change with its answer, which are one.
func (s *Server) api(open bool, op operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Request-Id", newID("req"))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return
		}
		form, err := url.ParseQuery(string(body))
		if r.Method == http.MethodGet {
			form, err = r.URL.Query(), nil
		}
		if err != nil {
			s.answer(w, r, newAnswer(nil, refused("", "", "The body is not form-encoded.")))
			return
		}
		publishable, f := s.authenticate(r, open)
		if f != nil {
			s.answer(w, r, newAnswer(nil, f))
			return
		}
		id := identity{key: r.Header.Get("Idempotency-Key"), request: r.Method + " " + r.URL.Path + "\n" + string(body)}
		if r.Method == http.MethodGet {
			id.key = ""
		}
		fault := s.faults.draw(Request{r.Method, r.URL.Path, r.Pattern, r.PathValue("id"), id.key, form}, s.remembers(id.key))
		if s.breakBefore(w, r, fault) {
			return
		}
		a := s.once(id, func() answer {
			release, ok := s.locks.take(objectOf(r, form), lockWait)
			if !ok {
				return newAnswer(nil, lockTimeout())
			}
			defer release()
			if fault.Kind == Slow {
				s.pause(context.Background(), fault.For)
			}
			return s.execute(op, &request{id: r.PathValue("id"), params: newParams(form), publishable: publishable}, id, fault)
		})
		if s.breakAfter(w, r, fault) {
			return
		}
		s.answer(w, r, a)
	}
}

// objectOf is what a request changes; empty: something new, or nothing.
func objectOf(r *http.Request, form url.Values) string {
	switch {
	case r.Method == http.MethodGet:
		return ""
	case r.PathValue("id") != "":
		return r.PathValue("id")
	}
	return form.Get("payment_intent")
}

func (s *Server) authenticate(r *http.Request, open bool) (publishable bool, f *failure) {
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		key, _, _ = r.BasicAuth()
	}
	switch {
	case key == s.cfg.Key:
		return false, nil
	case key == "":
		return false, noKey("You did not provide an API key.")
	case !strings.HasPrefix(key, publishablePrefix):
		return false, noKey("Invalid API Key provided.")
	case !open:
		f := noKey("This API call cannot be made with a publishable API key. Please use a secret API key.")
		f.Code = "secret_key_required"
		return false, f
	}
	return true, nil
}

// execute makes a change, and remembers its answer with it.
func (s *Server) execute(op operation, r *request, id identity, fault Fault) answer {
	s.mu.Lock()
	var result view
	var f *failure
	if fault.Kind == FailBefore {
		f = broken()
	} else if result, f = op(s.ledger, r); fault.Kind == FailAfter {
		f = broken()
	}
	a := newAnswer(result, f)
	if id.key != "" && (f == nil || !f.fleeting) {
		s.ledger.Answers[id.key] = a.of(id)
	}
	events := s.ledger.drainEvents()
	s.dirty = true
	s.mu.Unlock()
	s.mail.post(events)
	for _, refund := range r.later {
		s.settleLater(refund)
	}
	return a
}

// change changes the ledger from inside.
func (s *Server) change(do func(*ledger) error) error {
	s.mu.Lock()
	err := do(s.ledger)
	events := s.ledger.drainEvents()
	s.dirty = true
	s.mu.Unlock()
	s.mail.post(events)
	return err
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, a answer) {
	w.Header().Set("Content-Type", "application/json")
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		w.Header().Set("Idempotency-Key", key)
	}
	if a.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
	s.cfg.Logger.DebugContext(
		r.Context(), "sandbox answered", "method", r.Method, "path", r.URL.Path, "status", a.Status,
		"replayed", a.replayed,
	)
}

// writeJSON answers outside the API.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
