package broker

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// waiters are the commands that are claimed or in flight in this process.
type waiters struct {
	mu    sync.Mutex
	byID  map[telematics.CommandID]*waiter
	turns list.List // of waiters: in front is the one that was not polled for the longest time
}

// waiter correlates a command in flight with its answers.
type waiter struct {
	command *telematics.Command      // not changed once it has its lane
	updates chan *telematics.Command // holds the latest; a newer one replaces it
	turn    *list.Element
	span    tracing.Span // of the command, while it is in flight

	// Of the goroutine that sends the command.
	added    func(context.Context) error // waits until it is in the pending table; nil: it is
	message  *telematics.Transmission
	timers   timers
	received bool // the unit has it, so it is retransmitted less often

	// What keeps the command from leaving.
	wrongClock error  // it was dated by a wrong clock
	halted     bool   // by an operator
	unsent     error  // a server or a key is unavailable
	missing    string // likewise, in words for the caller

	mu       sync.Mutex
	known    delivery.Progress
	spoken   bool // the unit has answered
	answered bool // finally
	silenced bool // it is not published any more
	unstored bool // the record did not take its progress
	heard    struct{ open, final int }
}

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

func (ws *waiters) add(c *telematics.Command, span tracing.Span) *waiter {
	w := &waiter{command: c, span: span, updates: make(chan *telematics.Command, 1)}
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

// find returns nil for a command of another process, or of none.
func (ws *waiters) find(id telematics.CommandID) *waiter {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.byID[id]
}

// waiting are commands in flight.
type waiting struct {
	unheard  []telematics.CommandID // not answered
	received []telematics.CommandID // their units have them
}

// next returns n of those that were not polled for the longest time.
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

// notify passes on a newer reading of the command, which is not changed any more. It never blocks.
// A settled command is not replaced by an older reading of it.
func (w *waiter) notify(c *telematics.Command) {
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
	case old := <-w.updates:
		if !old.State.IsOpen() && c.State.IsOpen() {
			w.updates <- old
			return
		}
	default:
	}
	w.updates <- c
}

// hasReceived reports whether the unit has said that it has the command. For each copy of it the
// unit says so again.
func (w *waiter) hasReceived() bool { return !w.progress().ReceivedAt.IsZero() }

// receives notes that the unit has the command. It reports whether that is news, and if so tells of
// the command as it is now, before anything else of it is published here.
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

// firstWord notes that the unit has said something, and returns how long that took, if it is the
// first time.
func (w *waiter) firstWord() (took time.Duration, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first = !w.spoken && !w.known.SentAt.IsZero()
	w.spoken = true
	return time.Since(w.known.SentAt), first
}

// answers notes that there is a final answer, or a rejection that the unit does not remember: it
// might execute another copy, so there must be no more of them than there are.
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

// loseProgress notes that the record did not take the command's progress.
func (w *waiter) loseProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unstored = true
}

// progressWasLost reports whether the record did not take the command's progress. It reports so
// once.
func (w *waiter) progressWasLost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := w.unstored
	w.unstored = false
	return lost
}

// published notes that the MQTT client took the message.
func (w *waiter) published(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known.Attempts == 0 {
		w.known.SentAt = at
	}
	w.known.Attempts++
}

func (w *waiter) progress() delivery.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known
}

// withProgress returns a command with what only this process may know yet.
func (w *waiter) withProgress(c *telematics.Command) *telematics.Command {
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

// timers say when something is due for a command in flight; zero: never.
type timers struct {
	deadline   time.Time
	retransmit time.Time
	progress   time.Time // it is stored
}

// next returns the time until something is due.
func (t *timers) next() time.Duration {
	first := t.deadline
	for _, at := range [...]time.Time{t.retransmit, t.progress} {
		if !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return time.Until(first)
}

// due reports whether a timer has expired.
func due(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// register adds a waiter for a command that is about to be claimed [LAW-2], and begins to add the
// command to the pending table. That is concurrent with writing the command's row: only publishing
// needs both [LAW-1].
func (b *Broker) register(ctx context.Context, c *telematics.Command) *waiter {
	w := b.waiters.add(c, tracing.SpanOf(ctx))
	w.added = b.Pending.Register(b.entry(c))
	return w
}

// awaitRegistration waits until a registered command is in the pending table.
func (b *Broker) awaitRegistration(ctx context.Context, w *waiter) error {
	defer tracing.Step(ctx, delivery.StepRegister).End()
	ctx, cancel := b.step(ctx)
	defer cancel()
	added := w.added
	w.added = nil // it would be kept for as long as the command is in flight
	if err := added(ctx); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return nil
}

// unregister removes a command that was not claimed, or of which no store has said so. A trip to
// Redis that takes longer than a step may add it after that; then the entry expires.
func (b *Broker) unregister(ctx context.Context, w *waiter) {
	b.waiters.remove(w.command.ID)
	entry := b.entry(w.command)
	b.background.Go(func() {
		_ = b.awaitRegistration(ctx, w) // it may have been added all the same
		b.outbox.releases.add(ctx, entry)
	})
}

// release removes a settled command.
func (b *Broker) release(ctx context.Context, c *telematics.Command) {
	b.outbox.releases.add(ctx, b.entry(c))
	b.waiters.remove(c.ID)
}

// entry is the command's in the pending table.
func (b *Broker) entry(c *telematics.Command) delivery.Pending {
	return delivery.Pending{Command: c.ID, Vehicle: c.Vehicle, Unit: c.Unit, Instance: b.Instance, Deadline: c.Deadline}
}
