package brokertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"motorpool/broker"
	"motorpool/telematics"
)

var _ EventLog = (*Events)(nil)

// Events is an event log in memory. It is safe for concurrent use, by any number of followers, and
// works in the virtual time of testing/synctest.
type Events struct {
	Kept int // maximum number of events; zero: unlimited

	mu       sync.Mutex
	broken   error
	last     int64
	events   []telematics.Event
	appended chan struct{} // closed by the next event
}

// NewEvents returns an empty log.
func NewEvents() *Events { return &Events{appended: make(chan struct{})} }

var _ broker.Events = (*Events)(nil)

// Break makes Publish and After return an error and do nothing, and Follow wait. A nil error mends
// the log.
func (l *Events) Break(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = err
}

// Empty removes all events, as a restart of Redis does.
func (l *Events) Empty() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = nil
	l.wake()
}

// All returns all events, oldest first.
func (l *Events) All() []telematics.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// wake needs the lock.
func (l *Events) wake() {
	close(l.appended)
	l.appended = make(chan struct{})
}

// Publish implements broker.Events.
func (l *Events) Publish(ctx context.Context, events []telematics.Event) ([]telematics.Event, error) {
	if err := ctx.Err(); err != nil {
		return events, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return events, l.broken
	}
	l.publish(events)
	return nil, nil
}

// publish needs the lock.
func (l *Events) publish(events []telematics.Event) {
	for _, e := range events {
		l.last++
		e.ID = fmt.Sprintf("%d-0", l.last)
		l.events = append(l.events, e)
	}
	if l.Kept > 0 && len(l.events) > l.Kept {
		l.events = slices.Clone(l.events[len(l.events)-l.Kept:])
	}
	l.wake()
}

// After implements EventLog.
func (l *Events) After(ctx context.Context, id, until string, limit int) ([]telematics.Event, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, false, l.broken
	}
	for i, e := range l.events {
		if e.ID == id {
			after := l.events[i+1:]
			if end := slices.IndexFunc(l.events, func(e telematics.Event) bool { return e.ID == until }); end >= 0 {
				after = l.events[i+1 : max(i, end)+1]
			}
			return slices.Clone(after[:min(limit, len(after))]), true, nil
		}
	}
	return nil, false, nil
}

// pollEvery is the interval at which Follow reads a log to which nothing is added.
const pollEvery = 100 * time.Millisecond

// Follow implements EventLog.
func (l *Events) Follow(ctx context.Context, recent int, begin, next func([]telematics.Event)) error {
	at := ""
	for ctx.Err() == nil {
		l.mu.Lock()
		appended := l.appended
		if l.broken == nil && len(l.events) == 0 {
			l.publish([]telematics.Event{{Kind: telematics.ResetEvent, At: time.Now().UTC()}})
		}
		latest := slices.Clone(l.events[max(0, len(l.events)-recent):])
		l.mu.Unlock()
		events, complete, err := l.After(ctx, at, "", len(latest)+recent)
		switch {
		case err != nil:
			events = nil
		case !complete:
			events = latest
			begin(events)
		case len(events) > 0:
			next(events)
		}
		if err == nil {
			next(nil) // the log replies
		}
		if len(events) > 0 {
			at = events[len(events)-1].ID
			continue
		}
		select {
		case <-appended:
		case <-time.After(pollEvery): // the log may be mended
		case <-ctx.Done():
		}
	}
	return nil
}
