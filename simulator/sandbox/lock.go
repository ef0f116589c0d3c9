package sandbox

import (
	"sync"
	"time"
)

// locks lets one request at a time change an object.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is free again
}

// take waits for an object, and returns what gives it back; false: it took too long.
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
