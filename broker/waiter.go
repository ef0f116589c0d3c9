package broker

import (
	"sync"
	"time"

	"motorpool/telematics"
)

// waiters are the callers that wait in this process, by command.
type waiters struct {
	mu   sync.Mutex
	byID map[telematics.CommandID]*waiter
}

// waiter is one caller that waits for its command.
type waiter struct {
	command *telematics.Command      // as it was claimed; nobody changes it
	news    chan *telematics.Command // holds the latest; a newer one replaces it

	mu       sync.Mutex
	sentAt   time.Time // zero: the MQTT client never took the message
	attempts int
	received bool
}

func (ws *waiters) add(c *telematics.Command) *waiter {
	w := &waiter{command: c, news: make(chan *telematics.Command, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byID == nil {
		ws.byID = make(map[telematics.CommandID]*waiter)
	}
	ws.byID[c.ID] = w
	return w
}

func (ws *waiters) remove(id telematics.CommandID) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.byID, id)
}

// find returns nil where nobody waits here.
func (ws *waiters) find(id telematics.CommandID) *waiter {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.byID[id]
}

// waiting are commands that are waited for.
type waiting struct {
	unheard  []telematics.CommandID // nothing has been heard of them
	received []telematics.CommandID // their units have them
}

// parts returns those of some of the pollParts, which are counted on and on.
func (ws *waiters) parts(from, to int) (w waiting) {
	to = min(to, from+pollParts)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for id, waiter := range ws.byID {
		part := int(id[len(id)-1]) % pollParts // the end of an id is random
		switch {
		case (part-from%pollParts+pollParts)%pollParts >= to-from:
		case waiter.hasReceived():
			w.received = append(w.received, id)
		default:
			w.unheard = append(w.unheard, id)
		}
	}
	return w
}

// tell gives the caller news, and never blocks. A settled command is not
// replaced by an older reading of it.
func (w *waiter) tell(c telematics.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received = w.received || c.State == telematics.Received
	select {
	case old := <-w.news:
		if !old.State.IsOpen() && c.State.IsOpen() {
			w.news <- old
			return
		}
	default:
	}
	w.news <- &c
}

// hasReceived reports whether the record has it that the unit has received the command. For each copy of it the unit says so again.
func (w *waiter) hasReceived() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.received
}

// handed notes that the MQTT client took the message, and returns how often it has.
func (w *waiter) handed(at time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attempts == 0 {
		w.sentAt = at
	}
	w.attempts++
	return w.attempts
}

// sent returns when the message was first handed over (zero: never) and how often.
func (w *waiter) sent() (time.Time, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sentAt, w.attempts
}

// complete adds to a command what only this process may know yet.
func (w *waiter) complete(c *telematics.Command) *telematics.Command {
	at, attempts := w.sent()
	if c.SentAt.IsZero() {
		c.SentAt = at
	}
	c.Attempts = max(c.Attempts, attempts)
	return c
}
