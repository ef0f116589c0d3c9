package broker

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// waiters are those of the commands that this process claims or has in flight.
type waiters struct {
	mu    sync.Mutex
	byID  map[telematics.CommandID]*waiter
	turns list.List // waiters, the least recently polled one in front
}

// waiter correlates a command in flight with its answers.
type waiter struct {
	command *telematics.Command      // not changed once it has its lane
	began   time.Time                // when it was requested, by the monotonic clock
	updates chan *telematics.Command // holds the latest; a newer one replaces it
	turn    *list.Element
	span    tracing.Span // of the command, while it is in flight

	// Of the goroutine that sends the command.
	added    func(context.Context) error // waits for the pending entry; nil: it was called
	message  *telematics.Transmission
	timers   timers
	compared time.Time // when clocks were compared for its publication; zero: they were not
	received bool      // the unit has it, so it is retransmitted less often

	// Why the command is not published.
	halted  bool   // by an operator
	unsent  error  // something is unavailable, or its order does not allow it any more
	missing string // what is unavailable, in words for the caller; empty: nothing

	stopped      atomic.Bool // it must not be published any more
	progressLost atomic.Bool // its progress was not stored

	mu        sync.Mutex
	latest    delivery.Progress         // may be newer than what is stored
	published time.Time                 // first, by the monotonic clock
	answered  bool                      // the unit has sent an answer
	final     bool                      // it was the final one
	counts    struct{ open, final int } // answers so far
}

// countAnswer counts an answer, and reports whether it is queued before all others.
func (w *waiter) countAnswer(state telematics.State) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.counts.final
	if state.IsOpen() {
		n = &w.counts.open
	}
	*n++
	return *n <= answersFirst
}

func (ws *waiters) add(c *telematics.Command, span tracing.Span) *waiter {
	w := &waiter{command: c, began: time.Now(), span: span, updates: make(chan *telematics.Command, 1)}
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

// find returns nil where the command has no waiter in this process.
func (ws *waiters) find(id telematics.CommandID) *waiter {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.byID[id]
}

// of returns the waiter of a command, if a unit has that command; else nil.
func (ws *waiters) of(unit telematics.Unit, id telematics.CommandID) *waiter {
	if w := ws.find(id); w != nil && w.command.Unit == unit {
		return w
	}
	return nil
}

// waiting are commands in flight.
type waiting struct {
	unanswered []telematics.CommandID // not answered
	received   []telematics.CommandID // acknowledged by their units
}

// next returns the n least recently polled commands.
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
			of.unanswered = append(of.unanswered, w.command.ID)
		}
	}
	return of
}

// notify passes a newer version of the command to the goroutine that awaits it, and never blocks.
// The version must not be modified any more. An open version never replaces a settled one.
func (w *waiter) notify(c *telematics.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.State == telematics.Received && w.latest.ReceivedAt.IsZero() {
		// The answer came to another instance.
		w.latest.ReceivedAt = c.ReceivedAt
	}
	w.final = w.final || !c.State.IsOpen()
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

// hasReceived reports whether the unit has acknowledged the command. It acknowledges each copy.
func (w *waiter) hasReceived() bool { return !w.progress().ReceivedAt.IsZero() }

// markReceived notes that the unit has the command. It reports whether that is new, and if so
// passes the command as it is now to publish, before any later event of it.
func (w *waiter) markReceived(at time.Time, publish func(*telematics.Command)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.final || !w.latest.ReceivedAt.IsZero() {
		return false
	}
	w.latest.ReceivedAt = at
	c := *w.command
	c.State, c.SentAt, c.ReceivedAt, c.Attempts = telematics.Received, w.latest.SentAt, at, w.latest.Attempts
	c.Retransmitted = w.latest.Retransmitted
	publish(&c)
	w.replace(&c)
	return true
}

// firstAnswer notes that the unit has answered, and returns how long its first answer took; false:
// this is not the first.
func (w *waiter) firstAnswer() (took time.Duration, first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first = !w.answered && !w.latest.SentAt.IsZero()
	w.answered = true
	return time.Since(w.published), first
}

// sincePublished returns how long ago the command was first published, by the monotonic clock.
func (w *waiter) sincePublished() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.published)
}

// markAnswered notes a final answer. After a rejection that the unit does not remember, the command
// is not published again: the unit might execute the next copy.
func (w *waiter) markAnswered(a telematics.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.final = true
	if a.Forgotten() {
		w.stopped.Store(true)
	}
}

// markPublished notes that the MQTT client has accepted the message.
func (w *waiter) markPublished(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latest.Attempts == 0 {
		w.latest.SentAt, w.published = at, time.Now()
	} else if len(w.latest.Retransmitted) < telematics.MaxRetransmissions {
		// Readers hold a slice of the former length.
		w.latest.Retransmitted = append(w.latest.Retransmitted, at)
	}
	w.latest.Attempts++
}

func (w *waiter) progress() delivery.Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest
}

// withProgress returns a command with the progress that may not be stored yet.
func (w *waiter) withProgress(c *telematics.Command) *telematics.Command {
	p, more := w.progress(), *c // others read c
	more.SentAt, more.ReceivedAt = cmp.Or(more.SentAt, p.SentAt), cmp.Or(more.ReceivedAt, p.ReceivedAt)
	more.Attempts = max(more.Attempts, p.Attempts)
	if len(more.Retransmitted) < len(p.Retransmitted) {
		more.Retransmitted = p.Retransmitted
	}
	return &more
}

// timers say when something is due for a command in flight; zero: never.
type timers struct {
	deadline   time.Time
	retransmit time.Time
	progress   time.Time // its progress is stored
	confirm    time.Time // besteffort.Handler.Confirm is called
}

// next returns the time until something is due.
func (t *timers) next() time.Duration {
	first := t.deadline
	for _, at := range [...]time.Time{t.retransmit, t.progress, t.confirm} {
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
	w.added = b.config.Pending.Register(b.entry(c))
	return w
}

// awaitRegistration waits until a registered command is in the pending table.
func (b *Broker) awaitRegistration(ctx context.Context, w *waiter) error {
	defer tracing.Step(ctx, delivery.StepRegister).End()
	ctx, cancel := b.step(ctx)
	defer cancel()
	added := w.added
	w.added = nil // frees it: the command may be in flight for long
	if err := added(ctx); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return nil
}

// unregister removes the waiter and the pending entry of a command that was not claimed, as far as
// known. Where adding the entry takes longer than a step, it may come after its removal; then it
// expires.
func (b *Broker) unregister(ctx context.Context, w *waiter) {
	b.waiters.remove(w.command.ID)
	entry := b.entry(w.command)
	b.background.Go(func() {
		_ = b.config.Guard.Do("await registration", func() {
			_ = b.awaitRegistration(ctx, w) // it may have been added all the same
		})
		b.outbox.releases.add(ctx, entry)
	})
}

// release removes the waiter and the pending entry of a settled command.
func (b *Broker) release(ctx context.Context, c *telematics.Command) {
	b.outbox.releases.add(ctx, b.entry(c))
	b.waiters.remove(c.ID)
}

// isUnpublished reports whether a command that waits here is not published yet.
func (b *Broker) isUnpublished(id telematics.CommandID) bool {
	w := b.waiters.find(id)
	return w != nil && w.progress().Attempts == 0
}

// entry returns the pending entry of a command.
func (b *Broker) entry(c *telematics.Command) delivery.Pending {
	return delivery.Pending{Command: c.ID, Vehicle: c.Vehicle, Unit: c.Unit, Instance: b.config.Instance, Deadline: c.Deadline}
}
