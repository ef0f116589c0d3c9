package broker

import (
	"container/list"
	"context"
	"sync"
	"time"

	"motorpool/telematics"
)

// waiters are the callers whose commands are being claimed or carried in this process, by command.
type waiters struct {
	mu    sync.Mutex
	byID  map[telematics.CommandID]*waiter
	turns list.List // of waiters: who was not asked about for the longest time is in front
}

// waiter is one caller that waits for its command.
type waiter struct {
	command *telematics.Command      // which nobody changes once it has its lane
	news    chan *telematics.Command // holds the latest; a newer one replaces it
	turn    *list.Element

	// Of whoever carries the command, and of nobody else.
	added   func(context.Context) error // waits until it is in the pending table; nil: it is
	agenda  agenda
	patient bool // the unit has it, so it is asked less often

	wrongClock error // it was dated by a wrong clock, and must not leave

	mu       sync.Mutex
	known    telematics.Progress
	spoken   bool // the unit has said something about it
	answered bool // finally
	silenced bool // it is not published any more
	unnoted  bool // the record did not take a note
	heard    struct{ open, final int }
}

// answersFirst is how many answers of each kind, received and final, go before all others to a waiter. Units repeat their answer for each copy of
// the command; one that repeats it more often is kept to its allowance.
const answersFirst = 16

// goesFirst counts an answer, and reports whether it goes before all others.
func (w *waiter) goesFirst(state telematics.State) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.heard.final
	if state.IsOpen() {
		n = &w.heard.open
	}
	*n++
	return *n <= answersFirst
}

func (ws *waiters) add(c *telematics.Command) *waiter {
	w := &waiter{command: c, news: make(chan *telematics.Command, 1)}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byID == nil {
		ws.byID = make(map[telematics.CommandID]*waiter)
	}
	ws.byID[c.ID] = w
	w.turn = ws.turns.PushBack(w)
	return w
}

func (ws *waiters) remove(id telematics.CommandID) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.byID[id]; w != nil {
		ws.turns.Remove(w.turn)
		delete(ws.byID, id)
	}
}

func (ws *waiters) count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.byID)
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

// next returns so many of those that were not asked about for the longest time.
func (ws *waiters) next(n int) (of waiting) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for range min(n, ws.turns.Len()) {
		turn := ws.turns.Front()
		ws.turns.MoveToBack(turn)
		w := turn.Value.(*waiter)
		if w.hasReceived() {
			of.received = append(of.received, w.command.ID)
		} else {
			of.unheard = append(of.unheard, w.command.ID)
		}
	}
	return of
}

// tell gives the caller news, which nobody changes any more, and never blocks. A settled command is not
// replaced by an older reading of it.
func (w *waiter) tell(c *telematics.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.State == telematics.Received && w.known.ReceivedAt.IsZero() { // another instance heard it
		w.known.ReceivedAt = c.ReceivedAt
	}
	w.answered = w.answered || !c.State.IsOpen()
	w.replace(c)
}

func (w *waiter) replace(c *telematics.Command) {
	select {
	case old := <-w.news:
		if !old.State.IsOpen() && c.State.IsOpen() {
			w.news <- old
			return
		}
	default:
	}
	w.news <- c
}

// hasReceived reports whether the unit has said that it has the command. For each copy of it the unit says so again.
func (w *waiter) hasReceived() bool { return !w.progress().ReceivedAt.IsZero() }

// receives notes that the unit has the command. It reports whether that is news, and if so tells of the command as it is now, before
// anything else is told of it here.
func (w *waiter) receives(at time.Time, tell func(*telematics.Command)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered || !w.known.ReceivedAt.IsZero() {
		return false
	}
	w.known.ReceivedAt = at
	c := *w.command
	c.State, c.SentAt, c.ReceivedAt, c.Attempts = telematics.Received, w.known.SentAt, at, w.known.Attempts
	tell(&c)
	w.replace(&c)
	return true
}

// firstWord notes that the unit has said something, and returns how long that took, if it is the first time.
func (w *waiter) firstWord() (took time.Duration, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first = !w.spoken && !w.known.SentAt.IsZero()
	w.spoken = true
	return time.Since(w.known.SentAt), first
}

// answers notes that there is a final answer, or a rejection that the unit does not remember: it might execute another copy, so there
// must be no more of them than there are.
func (w *waiter) answers(a telematics.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
	w.silenced = w.silenced || a.Forgotten()
}

// isSilenced reports whether the command must not be published any more.
func (w *waiter) isSilenced() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silenced
}

// missNote notes that the record did not take a note.
func (w *waiter) missNote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unnoted = true
}

// missedNote reports whether the record did not take a note. It reports so once.
func (w *waiter) missedNote() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	missed := w.unnoted
	w.unnoted = false
	return missed
}

// handed notes that the MQTT client took the message.
func (w *waiter) handed(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known.Attempts == 0 {
		w.known.SentAt = at
	}
	w.known.Attempts++
}

func (w *waiter) progress() telematics.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known
}

// complete returns a command with what only this process may know yet.
func (w *waiter) complete(c *telematics.Command) *telematics.Command {
	p := w.progress()
	if (!c.SentAt.IsZero() || p.SentAt.IsZero()) && (!c.ReceivedAt.IsZero() || p.ReceivedAt.IsZero()) && c.Attempts >= p.Attempts {
		return c
	}
	more := *c // others read it
	if more.SentAt.IsZero() {
		more.SentAt = p.SentAt
	}
	if more.ReceivedAt.IsZero() {
		more.ReceivedAt = p.ReceivedAt
	}
	more.Attempts = max(more.Attempts, p.Attempts)
	return &more
}
