// Package signintest has the stores of the sign-in in memory.
package signintest

import (
	"bytes"
	"context"
	"maps"
	"strings"
	"sync"
	"time"
)

// Sessions stores sessions, without expiry. It is safe for concurrent use.
type Sessions struct {
	mu      sync.Mutex
	values  map[string][]byte
	err     error
	failing int // reads and swaps that fail
}

// Break lets all calls fail with an error; nil: none.
func (m *Sessions) Break(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Fail lets the next reads and swaps fail.
func (m *Sessions) Fail(times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = times
}

// failure returns an error for as many calls as Fail has set. The caller holds the lock.
func (m *Sessions) failure() error {
	if m.failing > 0 {
		m.failing--
		return Unavailable{}
	}
	return m.err
}

// Unavailable is the error of a store that cannot be reached.
type Unavailable struct{}

func (Unavailable) Error() string { return "the store is unavailable" }

// Unavailable returns true.
func (Unavailable) Unavailable() bool { return true }

func (m *Sessions) put(key string, value []byte) {
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[key] = value
}

// Put stores a value. Its error is that of Break.
func (m *Sessions) Put(_ context.Context, key string, value []byte, _ time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.put(key, value)
	}
	return m.err
}

// PutNew stores a value unless there is one, and reports whether it is this one. Its error is that
// of Break.
func (m *Sessions) PutNew(_ context.Context, key string, value []byte, _ time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil && m.values[key] == nil {
		m.put(key, value)
	}
	return m.err == nil && bytes.Equal(m.values[key], value), m.err
}

// Get returns a value, or nil. Its error is that of Break or Fail.
func (m *Sessions) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.failure()
}

// Delete deletes a value. Its error is that of Break.
func (m *Sessions) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return m.err
}

// Swap replaces a value that is still the old one; nil: it deletes it. Its error is that of Break
// or Fail.
func (m *Sessions) Swap(_ context.Context, key string, old, value []byte, _ time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failure(); err != nil {
		return false, err
	}
	switch {
	case !bytes.Equal(m.values[key], old):
		return bytes.Equal(m.values[key], value), nil
	case value == nil:
		delete(m.values, key)
	default:
		m.put(key, value)
	}
	return true, nil
}

// Expire removes the values whose keys have a suffix, as after their time, and returns how many.
func (m *Sessions) Expire(suffix string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.values)
	maps.DeleteFunc(m.values, func(key string, _ []byte) bool { return strings.HasSuffix(key, suffix) })
	return before - len(m.values)
}

// String returns all that is stored.
func (m *Sessions) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all strings.Builder
	for key, value := range m.values {
		all.WriteString(key + "=" + string(value) + "\n")
	}
	return all.String()
}
