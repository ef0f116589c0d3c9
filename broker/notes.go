package broker

import (
	"context"
	"time"

	"motorpool/telematics"
)

const (
	// noteAfter is how long after its first attempt, and after it was received, it is noted how far a command has come:
	// where the final answer comes sooner, what it changes says so too, and the note would be a second writing of the same row.
	noteAfter = 250 * time.Millisecond
	// noteTogether is how much later others' notes go with the first.
	noteTogether = 50 * time.Millisecond
)

// note writes down how far a command has come, beside the wait: nothing depends on it but what a reader of the command
// sees. Later attempts are written down with the next of it.
func (b *Broker) note(ctx context.Context, w *waiter) {
	if p := w.progress(); p.Attempts > 0 || !p.ReceivedAt.IsZero() {
		b.notes.add(ctx, telematics.Note{Command: w.command.ID, Progress: p})
	}
}

func (b *Broker) noteAll(ctx context.Context, notes []telematics.Note) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	err := b.Commands.Note(ctx, notes)
	if err == nil {
		return
	}
	b.Logger.Debug("progress not noted", "commands", len(notes), "err", err)
	for _, n := range notes {
		if w := b.waiters.find(n.Command); w != nil {
			w.missNote() // it is made up for with the next attempt
		}
	}
}
