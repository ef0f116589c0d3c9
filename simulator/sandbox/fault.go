package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"sync"
	"time"
)

// FaultKind is a kind of fault. "Before" means that the request is not performed, "after" that it
// is performed completely.
type FaultKind string

const (
	HangBefore  FaultKind = "hang_before"  // no answer, until the caller leaves
	HangAfter   FaultKind = "hang_after"   // likewise
	ResetBefore FaultKind = "reset_before" // the connection is cut
	ResetAfter  FaultKind = "reset_after"  // likewise
	FailBefore  FaultKind = "fail_before"  // a 500, which is the key's answer from then on
	FailAfter   FaultKind = "fail_after"   // likewise
	TooMany     FaultKind = "too_many"     // a 429
	BadKey      FaultKind = "bad_key"      // a 401
	Slow        FaultKind = "slow"         // the object is busy for a while first
	Late        FaultKind = "late"         // it arrives after a while, and gets no answer
)

var faultKinds = []FaultKind{HangBefore, HangAfter, ResetBefore, ResetAfter, FailBefore, FailAfter, TooMany, BadKey, Slow, Late}

// Fault is a fault of the next matching requests.
type Fault struct {
	// Kind says how.
	Kind FaultKind `json:"kind"`
	// Method is that of the requests it is for. Defaults to any.
	Method string `json:"method"`
	// Path is that of the requests it is for, as path.Match has it: /v1/payment_intents/*/confirm.
	// Defaults to any.
	Path string `json:"path"`
	// Times is how many requests fail; negative: all, until Heal. Defaults to 1.
	Times int `json:"times"`
	// Percent is the share of matching requests that fail. Defaults to 100.
	Percent int `json:"percent"`
	// For is how long it is slow or late, or hangs. A hang defaults to as long as the caller stays.
	For time.Duration `json:"-"`
}

func (f Fault) check() error {
	_, badPath := path.Match(f.Path, "")
	switch {
	case !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("fault %q: want one of %v", string(f.Kind), faultKinds)
	case badPath != nil:
		return fmt.Errorf("path %q of a fault: %w", f.Path, badPath)
	case f.Percent < 0 || f.Percent > 100:
		return fmt.Errorf("%d percent of a fault: want 1 to 100", f.Percent)
	case (f.Kind == Slow || f.Kind == Late) && f.For <= 0:
		return fmt.Errorf("a fault that is %s says for how long", f.Kind)
	}
	return nil
}

func (f Fault) matches(method, target string) bool {
	ok, _ := path.Match(cmp.Or(f.Path, target), target)
	return ok && (f.Method == "" || f.Method == method)
}

// faults are the present faults. The first one that matches a request applies to it.
type faults struct {
	mu     sync.Mutex // guards what follows
	orders []Fault
	by     func(Request) Fault
	fired  map[FaultKind]int
}

// Request is a request of the API.
type Request struct {
	Method, Path string
	Pattern      string // of the path, with the method: POST /v1/payment_intents/{id}/confirm
	ID           string // of the object that the path names; empty: none
	Key          string // the idempotency key; empty: none
	Form         url.Values
}

// BreakBy sets a function that is called for each request that no fault of Break applies to, and
// returns its fault; the zero Fault is none. A nil function ends that.
func (s *Server) BreakBy(by func(Request) Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.by = by
}

// Break adds faults after the present ones.
func (s *Server) Break(orders ...Fault) error {
	for i, f := range orders {
		if err := f.check(); err != nil {
			return err
		}
		orders[i].Times, orders[i].Percent = cmp.Or(f.Times, 1), cmp.Or(f.Percent, 100)
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.orders = append(s.faults.orders, orders...)
	return nil
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.orders = nil
}

// Faults returns the present faults.
func (s *Server) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return slices.Clone(s.faults.orders)
}

// Fired returns how many requests have failed so far, by kind.
func (s *Server) Fired() map[FaultKind]int {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return maps.Clone(s.faults.fired)
}

// draw returns the order for a request; its kind is empty where there is none. What has its answer
// is not carried out, so it cannot fail while it is.
func (o *faults) draw(r Request, answered bool) Fault {
	o.mu.Lock()
	by := o.by
	f, ok := o.ordered(r, answered)
	o.mu.Unlock()
	if !ok && by != nil {
		if f = by(r); answered && f.inside() {
			f = Fault{}
		}
	}
	return f
}

// inside reports whether a request fails while it is carried out.
func (f Fault) inside() bool { return f.Kind == FailBefore || f.Kind == FailAfter || f.Kind == Slow }

func (o *faults) ordered(r Request, answered bool) (Fault, bool) {
	for i, f := range o.orders {
		if !f.matches(r.Method, r.Path) || answered && f.inside() || rand.IntN(100) >= f.Percent {
			continue
		}
		if o.fired == nil {
			o.fired = map[FaultKind]int{}
		}
		o.fired[f.Kind]++
		if f.Times > 0 {
			if o.orders[i].Times--; o.orders[i].Times == 0 {
				o.orders = slices.Delete(o.orders, i, i+1)
			}
		}
		return f, true
	}
	return Fault{}, false
}

// breakBefore reports whether the request ends here.
func (s *Server) breakBefore(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch f.Kind {
	case HangBefore:
		s.hang(r, f)
	case ResetBefore:
		reset(w)
	case TooMany:
		s.answer(w, r, newAnswer(nil, tooMany()))
	case BadKey:
		s.answer(w, r, newAnswer(nil, noKey("Invalid API Key provided (ordered).")))
	case Late:
		s.pause(context.Background(), f.For)
		return false
	default:
		return false
	}
	return true
}

// breakAfter reports whether the answer is lost.
func (s *Server) breakAfter(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch f.Kind {
	case HangAfter:
		s.hang(r, f)
	case Late:
		s.hang(r, Fault{})
	case ResetAfter:
		reset(w)
	default:
		return false
	}
	return true
}

// hang ends in a cut connection.
func (s *Server) hang(r *http.Request, f Fault) {
	const forEver = 24 * time.Hour
	s.pause(r.Context(), cmp.Or(f.For, forEver))
	panic(http.ErrAbortHandler)
}

// reset closes the connection without an answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
