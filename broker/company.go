package broker

import (
	"sync"
	"time"

	"motorpool/telematics"
)

// company holds final answers of cars that took seconds, for a small part of that, until others
// have come: these then share the settlement and its commit, the report to Redis, and the event.
// The zero value holds none.
type company struct {
	mu      sync.Mutex
	answers []*queuedAnswer // at most companySize
	release *time.Timer
}

// mayHold reports whether an answer to a command in flight may wait for others: until well before
// the deadline, and not where a further copy of the command must be stopped.
func mayHold(c *telematics.Command, a *queuedAnswer) bool {
	return !a.answer.State.IsOpen() && !a.answer.Forgotten() &&
		a.at.Sub(c.Requested) >= companyAge && c.Deadline.Sub(a.at) >= companyMargin
}

// hold queues an answer with the others that are held, a moment later.
func (b *Broker) hold(a *queuedAnswer) {
	b.company.mu.Lock()
	defer b.company.mu.Unlock()
	b.company.answers = append(b.company.answers, a)
	switch len(b.company.answers) {
	case 1:
		b.company.release = time.AfterFunc(companyWait, func() {
			_ = b.config.Guard.Do("release answers", b.releaseHeld)
		})
	case companySize:
		b.releaseAll()
	}
}

func (b *Broker) releaseHeld() {
	b.company.mu.Lock()
	defer b.company.mu.Unlock()
	if len(b.company.answers) > 0 {
		b.releaseAll()
	}
}

// releaseAll queues the answers that are held. The caller holds mu, so that none is between the two
// when the queue is drained.
func (b *Broker) releaseAll() {
	b.company.release.Stop()
	for _, a := range b.company.answers {
		b.enqueue(b.first, a)
	}
	b.company.answers = nil
}
