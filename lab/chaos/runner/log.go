package runner

import (
	"slices"
	"sync"
)

// Log is what a round has seen, in order. The zero value is empty. It is safe for concurrent use.
type Log[T any] struct {
	mu  sync.Mutex // guards all
	all []T
}

// Add appends entries.
func (l *Log[T]) Add(entries ...T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, entries...)
}

// All returns the entries so far.
func (l *Log[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}
