package httpapi

import (
	"sync"
	"time"

	"motorpool/telematics"
)

// maxBoundActors bounds the actors that are counted at a time.
const maxBoundActors = 10_000

// actorBound bounds how many entries of each actor an instance adds to the audit log, which cannot be deleted from: refusals, as many a
// minute as the actor may make requests, and changes that no other limit bounds. It counts in memory, so that it also holds while Redis
// is unavailable, and costs a flood no trip. The zero value is ready; it is safe for concurrent use.
type actorBound struct {
	mu   sync.Mutex
	next map[telematics.Actor]time.Time // when all that the actor used is there again
}

// take reports whether one more of the actor is let through. What is unused adds up, to a minute's worth.
func (b *actorBound) take(actor telematics.Actor, now time.Time, perMinute int) bool {
	if perMinute == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(map[telematics.Actor]time.Time)
	}
	next, known := b.next[actor]
	if next.Before(now) {
		next = now
	}
	next = next.Add(time.Minute / time.Duration(perMinute))
	if next.Sub(now) > time.Minute || !known && !b.hasRoom(now) {
		return false
	}
	b.next[actor] = next
	return true
}

// hasRoom forgets actors that have used nothing for a while, where there are too many.
func (b *actorBound) hasRoom(now time.Time) bool {
	if len(b.next) < maxBoundActors {
		return true
	}
	for actor, next := range b.next {
		if !next.After(now) {
			delete(b.next, actor)
		}
	}
	return len(b.next) < maxBoundActors
}
