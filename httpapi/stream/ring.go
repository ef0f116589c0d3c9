package stream

import (
	"sync"

	"motorpool/telematics"
)

// frame is one event, encoded once for all subscribers. It does not change.
type frame struct {
	id      string
	kind    telematics.EventKind
	vehicle telematics.VehicleID
	agency  telematics.AgencyID
	text    []byte
}

// ring holds the latest events, for any number of subscribers that read at different speeds. A
// position is the number of events before it. Safe for concurrent use.
type ring struct {
	maxFrames int
	maxBytes  int

	mu     sync.RWMutex
	frames []frame           // oldest first
	end    uint64            // the position after the latest
	after  map[string]uint64 // the positions after events, by id
	last   string            // id of the latest event; empty: there is none yet
	bytes  int
	more   chan struct{} // closed when there are more
}

func newRing(maxFrames, maxBytes int) *ring {
	return &ring{maxFrames: maxFrames, maxBytes: maxBytes, after: map[string]uint64{}, more: make(chan struct{})}
}

// add appends frames, and drops the oldest ones beyond the bounds. The latest stays, however large
// it is.
func (r *ring) add(frames []frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range frames {
		r.end++
		r.after[f.id], r.last = r.end, f.id
		r.bytes += len(f.text)
	}
	r.frames = append(r.frames, frames...)
	for len(r.frames) > 1 && (len(r.frames) > r.maxFrames || r.bytes > r.maxBytes) {
		r.dropOldest()
	}
	close(r.more)
	r.more = make(chan struct{})
}

// clear drops all frames. It must be called without subscribers.
func (r *ring) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.frames) > 0 {
		r.dropOldest()
	}
	r.last = ""
}

// dropOldest is called with the lock held.
func (r *ring) dropOldest() {
	oldest := r.frames[0]
	r.bytes -= len(oldest.text)
	// Otherwise a later event has the same id.
	if r.after[oldest.id] == r.end-uint64(len(r.frames))+1 {
		delete(r.after, oldest.id)
	}
	r.frames = r.frames[1:]
}

// latest returns the position after the latest event, and its id; empty where there is none yet.
func (r *ring) latest() (uint64, string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.end, r.last
}

// find returns the position after an event.
func (r *ring) find(id string) (uint64, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	at, ok := r.after[id]
	return at, ok
}

// from returns the frames from a position on, or none and a channel that is closed when there are
// more. It reports false where the position was dropped.
func (r *ring) from(at uint64) (frames []frame, more <-chan struct{}, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	behind := r.end - at
	if behind == 0 {
		return nil, r.more, true
	}
	if behind > uint64(len(r.frames)) {
		return nil, nil, false
	}
	return r.frames[uint64(len(r.frames))-behind:], nil, true
}
