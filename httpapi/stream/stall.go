package stream

import "time"

// stall is whether the log answers.
type stall struct {
	timer   *time.Timer   // runs while the log is followed
	since   time.Time     // when it answered last; zero: it answers
	changed chan struct{} // closed by the next change
}

// answers records that the log answers.
func (f *Feed) answers() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil { // it is followed no more
		return
	}
	f.stall.timer.Reset(f.StallTimeout)
	f.stallSince(time.Time{})
}

// stalls records that the log has not answered for StallTimeout.
func (f *Feed) stalls() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.Logger.Warn("event log does not answer, subscribers get an event that says so", "within", f.StallTimeout)
		f.stallSince(time.Now().Add(-f.StallTimeout))
	}
}

// stallSince is called with the lock held.
func (f *Feed) stallSince(since time.Time) {
	if f.stall.since.IsZero() == since.IsZero() {
		return
	}
	f.stall.since = since
	close(f.stall.changed)
	f.stall.changed = make(chan struct{})
}

// stalled returns since when the log does not answer; zero: it does. The channel is closed when
// that has changed.
func (f *Feed) stalled() (since time.Time, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stall.since, f.stall.changed
}
