package rentaltest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"motorpool/rental"
)

// Notices keeps what a processor tells in memory. It implements rental.Notices. The zero value is empty.
type Notices struct {
	mu   sync.Mutex
	kept map[string]*told
}

type told struct {
	rental.Notice
	due time.Time // zero: handled
}

// Keep writes a notice down, once.
func (s *Notices) Keep(_ context.Context, n rental.Notice) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]*told{}
	}
	if s.kept[n.ID] == nil {
		s.kept[n.ID] = &told{Notice: n, due: time.Now()}
	}
	return nil
}

// TakeNotices takes notices that are due.
func (s *Notices) TakeNotices(_ context.Context, limit int, lease time.Duration) ([]rental.Notice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var due []*told
	for _, n := range s.kept {
		if !n.due.IsZero() && !n.due.After(now) {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b *told) int { return strings.Compare(a.ID, b.ID) })
	var taken []rental.Notice
	for _, n := range due[:min(limit, len(due))] {
		n.due = now.Add(lease)
		n.Attempts++
		taken = append(taken, n.Notice)
	}
	return taken, nil
}

// Handled gives a notice back.
func (s *Notices) Handled(_ context.Context, id string, again time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.kept[id]; n != nil && !n.due.IsZero() {
		n.due = again
	}
	return nil
}

// Open returns how many notices wait to be handled.
func (s *Notices) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := 0
	for _, n := range s.kept {
		if !n.due.IsZero() {
			open++
		}
	}
	return open
}
