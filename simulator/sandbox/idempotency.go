package sandbox

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// identity is a request and its idempotency key; empty: it has none.
type identity struct {
	key     string
	request string
}

func (i identity) fingerprint() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(i.request))) }

// answer is the answer to a request, and to each repetition with its key.
type answer struct {
	Status      int             `json:"status"`
	Body        json.RawMessage `json:"body"`
	Fingerprint string          `json:"fingerprint"`

	replayed bool
}

func newAnswer(v view, f *failure) answer {
	if f != nil {
		v = f.view()
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("sandbox: encode answer: %v", err)) // views are maps of plain values
	}
	return answer{Status: statusOf(f), Body: body}
}

func (a answer) of(i identity) answer {
	a.Fingerprint = i.fingerprint()
	return a
}

// remembers reports whether the key has its answer already.
func (s *Server) remembers(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.ledger.Answers[key]
	return ok
}

// once performs a request, unless its key has an answer already, or a request with it is in
// progress.
func (s *Server) once(id identity, do func() answer) answer {
	if id.key == "" {
		return do()
	}
	s.mu.Lock()
	kept, known := s.ledger.Answers[id.key]
	busy := s.inFlight[id.key]
	if !known && !busy {
		s.inFlight[id.key] = true
	}
	s.mu.Unlock()
	switch {
	case known && kept.Fingerprint != id.fingerprint():
		return newAnswer(nil, keyMismatch(id.key))
	case known:
		kept.replayed = true
		return kept
	case busy:
		return newAnswer(nil, keyInUse(id.key))
	}
	defer func() {
		s.mu.Lock()
		delete(s.inFlight, id.key)
		s.mu.Unlock()
	}()
	return do()
}

// lockWait is how long a request waits for another that changes the same object.
const lockWait = time.Second

// locks lets one request at a time change an object.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is free again
}

// take waits for an object, and returns a function that releases it; false: it took too long.
func (l *locks) take(object string, within time.Duration) (release func(), ok bool) {
	if object == "" {
		return func() {}, true
	}
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		l.mu.Lock()
		busy, held := l.held[object]
		if !held {
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			l.held[object] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, object)
				l.mu.Unlock()
				close(mine)
			}, true
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-deadline.C:
			return nil, false
		}
	}
}
