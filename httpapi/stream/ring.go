package stream

import (
	"slices"
	"sync"

	"motorpool/telematics"
)

// frame is one encoded event in the text of its chunk.
type frame struct {
	id      string
	kind    telematics.EventKind
	vehicle telematics.VehicleID
	agency  telematics.AgencyID
	from    int // in the chunk's text
	to      int
}

// chunk is a run of events, encoded once for all subscribers. It does not change.
type chunk struct {
	seq    uint64
	frames []frame
	text   []byte
}

// cursor is a position: a chunk, and the number of its frames that were sent.
type cursor struct {
	chunk  uint64
	frames int
}

// ring holds the latest events, for any number of subscribers that read at different speeds. Safe
// for concurrent use.
type ring struct {
	maxFrames int
	maxBytes  int

	mu     sync.RWMutex
	chunks []*chunk // oldest first; their numbers have no gap
	next   uint64   // number of the next chunk
	ids    map[string]cursor
	last   string // id of the latest event
	frames int
	bytes  int
	more   chan struct{} // closed by the next chunk
}

func newRing(maxFrames, maxBytes int) *ring {
	return &ring{maxFrames: maxFrames, maxBytes: maxBytes, ids: map[string]cursor{}, more: make(chan struct{})}
}

// add appends a chunk, and drops the oldest ones beyond the bounds. The latest stays, however large
// it is.
func (r *ring) add(c *chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.seq = r.next
	r.next++
	r.chunks = append(r.chunks, c)
	r.frames, r.bytes = r.frames+len(c.frames), r.bytes+len(c.text)
	for i, f := range c.frames {
		r.ids[f.id] = cursor{c.seq, i + 1}
		r.last = f.id
	}
	for len(r.chunks) > 1 && (r.frames > r.maxFrames || r.bytes > r.maxBytes) {
		r.dropOldest()
	}
	close(r.more)
	r.more = make(chan struct{})
}

// clear drops all chunks. It must be called without subscribers.
func (r *ring) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.chunks) > 0 {
		r.dropOldest()
	}
	r.last = ""
}

// dropOldest is called with the lock held.
func (r *ring) dropOldest() {
	oldest := r.chunks[0]
	r.chunks = slices.Delete(r.chunks, 0, 1)
	r.frames, r.bytes = r.frames-len(oldest.frames), r.bytes-len(oldest.text)
	for _, f := range oldest.frames {
		if r.ids[f.id].chunk == oldest.seq { // otherwise a later chunk has the same id
			delete(r.ids, f.id)
		}
	}
}

// end returns the position after the latest event, and its id; empty where there is none yet.
func (r *ring) end() (cursor, string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return cursor{chunk: r.next}, r.last
}

// find returns the position after an event.
func (r *ring) find(id string) (cursor, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	at, ok := r.ids[id]
	return at, ok
}

// from returns the chunk at a position, or nil and a channel that is closed by the next chunk. It
// reports false where the position was dropped.
func (r *ring) from(at cursor) (c *chunk, more <-chan struct{}, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	behind := r.next - at.chunk
	if behind > uint64(len(r.chunks)) {
		return nil, nil, false
	}
	if behind == 0 {
		return nil, r.more, true
	}
	return r.chunks[uint64(len(r.chunks))-behind], nil, true
}
