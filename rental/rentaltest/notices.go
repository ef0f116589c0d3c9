package rentaltest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
)

// Notices stores the notices of a processor in memory. It implements rental.Notices. The zero value
// is empty. It is safe for concurrent use.
type Notices struct {
	mu   sync.Mutex
	kept map[string]*storedNotice
}

type storedNotice struct {
	rental.Notice
	due time.Time // zero: handled
}

// Keep stores a notice, once.
func (s *Notices) Keep(_ context.Context, n rental.Notice) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]*storedNotice{}
	}
	if s.kept[n.ID] == nil {
		s.kept[n.ID] = &storedNotice{Notice: n, due: time.Now()}
	}
	return nil
}

// TakeNotices leases due notices.
func (s *Notices) TakeNotices(_ context.Context, limit int, lease time.Duration) ([]rental.Notice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var due []*storedNotice
	for _, n := range s.kept {
		if !n.due.IsZero() && !n.due.After(now) {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b *storedNotice) int { return strings.Compare(a.ID, b.ID) })
	var taken []rental.Notice
	for _, n := range due[:min(limit, len(due))] {
		n.due = now.Add(lease)
		n.Attempts++
		taken = append(taken, n.Notice)
	}
	return taken, nil
}

// Handled ends the lease of a notice.
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

// NoticeRecord is one store of notices, as two instances of Motorpool use it.
type NoticeRecord struct{ Here, There rental.Notices }

// NoticesContract tests the contract of rental.Notices. open returns a store for each test.
func NoticesContract(t *testing.T, open func(*testing.T) NoticeRecord) {
	for name, run := range map[string]func(*testing.T, NoticeRecord){
		"ANoticeIsTakenOnceHoweverOftenItComes": noticeOnce,
		"WhoseWorkerDiedComesAgain":             noticeAgain,
		"OneThatFailedComesAgainLater":          noticeLater,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

func newNotice(t *testing.T, l rental.Notices) rental.Notice {
	t.Helper()
	n := rental.Notice{
		ID: "evt_" + uuid.NewString(), Type: "payment_intent.succeeded", Object: "pi_1", Kind: rental.AboutIntent,
		Live: true,
	}
	require.NoError(t, l.Keep(t.Context(), n))
	return n
}

func takeNotice(t *testing.T, l rental.Notices, id string, lease time.Duration) (rental.Notice, bool) {
	t.Helper()
	taken, err := l.TakeNotices(t.Context(), 1000, lease)
	require.NoError(t, err)
	for _, n := range taken {
		if n.ID == id {
			return n, true
		}
	}
	return rental.Notice{}, false
}

func noticeOnce(t *testing.T, r NoticeRecord) {
	n := newNotice(t, r.Here)
	require.NoError(t, r.There.Keep(t.Context(), n))
	taken, ok := takeNotice(t, r.Here, n.ID, longLease)
	n.Attempts = 1
	if !ok || taken != n {
		t.Fatalf("taken: %+v, %v; want %+v", taken, ok, n)
	}
	if _, ok := takeNotice(t, r.There, n.ID, longLease); ok {
		t.Error("it is taken twice")
	}
	require.NoError(t, r.Here.Handled(t.Context(), n.ID, time.Time{}))
	if err := r.There.Keep(t.Context(), n); err != nil { // the same notice
		t.Fatal(err)
	}
	// A slow worker has failed.
	require.NoError(t, r.There.Handled(t.Context(), n.ID, time.Now().Add(-time.Second)))
	if _, ok := takeNotice(t, r.There, n.ID, longLease); ok {
		t.Error("it is taken after it was handled")
	}
}

func noticeAgain(t *testing.T, r NoticeRecord) {
	n := newNotice(t, r.Here)
	if _, ok := takeNotice(t, r.Here, n.ID, shortLease); !ok {
		t.Fatal("it is not due")
	}
	for began := time.Now(); time.Since(began) < soonEnough; time.Sleep(10 * time.Millisecond) {
		if again, ok := takeNotice(t, r.There, n.ID, longLease); ok {
			assert.Equal(t, again.Attempts, 2, "taken")
			return
		}
	}
	t.Error("it is lost")
}

func noticeLater(t *testing.T, r NoticeRecord) {
	n := newNotice(t, r.Here)
	for _, step := range []struct {
		again time.Time
		due   bool
	}{{time.Now().Add(time.Hour), false}, {time.Now().Add(-time.Second), true}} {
		takeNotice(t, r.Here, n.ID, longLease)
		require.NoError(t, r.Here.Handled(t.Context(), n.ID, step.again))
		if _, ok := takeNotice(t, r.There, n.ID, longLease); ok != step.due {
			t.Errorf("given back for %v: due %v", step.again, ok)
		}
	}
}
