package sandbox

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
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
	status := http.StatusOK
	if f != nil {
		v, status = f.view(), f.Status
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("sandbox: encode answer: %v", err)) // views are maps of plain values
	}
	return answer{Status: status, Body: body}
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
type locks struct{ held sync.Map } // object → chan struct{}, which has room for one

// take waits for an object, and returns a function that releases it; false: it took too long.
func (l *locks) take(object string, within time.Duration) (release func(), ok bool) {
	if object == "" {
		return func() {}, true
	}
	held, _ := l.held.LoadOrStore(object, make(chan struct{}, 1))
	room := held.(chan struct{})
	select {
	case room <- struct{}{}:
		return func() { <-room }, true
	case <-time.After(within):
		return nil, false
	}
}
